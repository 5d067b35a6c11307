"""`agtmux doctor`: what works here and what does not, each with what mends it.

`facts` is what can be found out, `here` and `watched` find it out, and the checks are pure: facts in, findings out.
`checks` has the table of them, group by group. Nothing here waits for a target: what is known of it is told.
"""
