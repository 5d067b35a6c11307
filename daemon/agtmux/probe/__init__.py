"""What runs beside a tmux server. Standard library only and valid on Python 3.8, so that it can be sent to a VM."""
