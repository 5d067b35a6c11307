"""The web page: plain HTML, CSS and ES modules, served as they are. The door to it is in `agtmux.api.board`."""
