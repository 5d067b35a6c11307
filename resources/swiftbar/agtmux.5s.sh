#!/bin/sh
# <xbar.title>agtmux</xbar.title>
# <xbar.desc>Which of your coding agents in tmux needs you.</xbar.desc>
# <xbar.dependencies>agtmux</xbar.dependencies>
# <swiftbar.hideAbout>true</swiftbar.hideAbout>
# <swiftbar.hideRunInTerminal>true</swiftbar.hideRunInTerminal>
#
# A plugin for SwiftBar (and xbar): link it into the plugin folder. The name says how often it is called.

# An app started from the Dock has a PATH without what was installed by hand.
PATH=$PATH:$HOME/.local/bin:/opt/homebrew/bin:/usr/local/bin
plain='emojize=false symbolize=false'

# `|` begins what SwiftBar does with a line. An agent's question must not.
shown() {
    sed -e 's/|/¦/g' -e "s/\$/ | $1/"
}

line=$(agtmux bar --format plain --width 60) || line='agtmux failed'
printf '%s\n' "${line:-·}" | shown "$plain"
echo ---
agtmux list panes --no-start 2>&1 | shown "trim=false font=Menlo size=12 $plain"
