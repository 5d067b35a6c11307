"""What agtmux knows of each agent. Nothing outside this package and its resources names one."""
