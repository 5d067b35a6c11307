#!/bin/sh
# agtmux in tmux: a key to choose an agent, a key to go to the one that has waited longest, a word for the status line.
# TPM runs this file; without TPM, `run-shell /path/to/agtmux.tmux` in tmux.conf does, after these if you want others:
#
#   set -g @agtmux_key g                     choose in a popup (prefix g; `none` binds no key)
#   set -g @agtmux_next_key G                go to who has waited longest
#   set -g @agtmux_command /path/to/agtmux   where the command is, if it is not in tmux's PATH
#   set -g status-right '#{agtmux} %H:%M'    #{agtmux} becomes what `agtmux bar` says
#
# A key that has a binding keeps it. `agtmux.tmux off` takes back all that was set here.

folder=$(cd "$(dirname "$0")" && pwd) || exit 1
self=$folder/$(basename "$0")

main() {
    case ${1-} in
        '') set_up ;;
        off) take_back ;;
        pick) pick "$2" ;;
        next) next "$2" "$3" ;;
        *) echo "usage: $0 [off]" >&2 && exit 2 ;;
    esac
}

set_up() {
    case $self in
        *[\'\#%]*) say "agtmux: no key is bound, as tmux could not read this path: $self" && exit 1 ;;
    esac
    find_agtmux
    bind @agtmux_key g "pick '#{client_tty}'"
    bind @agtmux_next_key G "next '#{client_tty}' '#{pane_id}'"
    bar="#('$agtmux' bar --format tmux)"
    tmux set-option -g @agtmux_bar "$bar"
    in_status_lines '#{agtmux}' "$bar"
}

take_back() {
    tmux list-keys -T prefix | while read -r _ _ _ key rest; do
        case $rest in
            *agtmux.tmux*) tmux unbind-key -T prefix "$key" ;;
        esac
    done
    bar=$(option @agtmux_bar '')
    [ -z "$bar" ] || in_status_lines "$bar" '#{agtmux}'
    tmux set-option -gu @agtmux_bar
}

# Each for the terminal whose key was pressed, which only tmux can tell.

pick() {
    find_agtmux
    exec tmux display-popup -c "$1" -w 90% -h 80% -E "'$agtmux' pick --new-window --client '$1'"
}

next() {
    find_agtmux
    said=$(TMUX_PANE=$2 "$agtmux" attach --waiting --new-window --client "$1" 2>&1) || say "${said#agtmux: E_*: }" "$1"
}

find_agtmux() {
    for agtmux in "$(option @agtmux_command '')" "$(command -v agtmux)" "$folder/.venv/bin/agtmux"; do
        case $agtmux in
            *[\'\#%\(\)]*) ;;
            *) [ -x "$agtmux" ] && return ;;
        esac
    done
    say 'agtmux: tmux finds no command agtmux; set -g @agtmux_command /path/to/agtmux' "${1-}"
    exit 1
}

bind() {
    key=$(option "$1" "$2")
    [ "$key" = none ] && return
    case $(tmux list-keys -T prefix "$key" 2>/dev/null) in
        '' | *agtmux.tmux*) tmux bind-key "$key" run-shell -b "'$self' $3" ;;
        *) say "agtmux: prefix $key is bound already and stays so; choose another with $1" ;;
    esac
}

in_status_lines() {
    for name in status-left status-right; do
        text=$(tmux show-options -gv "$name")
        case $text in
            *"$1"*) tmux set-option -g "$name" "$(replaced "$text" "$1" "$2")" ;;
        esac
    done
}

replaced() {
    before='' after=$1
    while :; do
        case $after in
            *"$2"*) before=$before${after%%"$2"*}$3 after=${after#*"$2"} ;;
            *) break ;;
        esac
    done
    printf '%s' "$before$after"
}

option() {
    value=$(tmux show-options -gqv "$1")
    printf '%s' "${value:-$2}"
}

say() {
    # tmux would read formats and times into it.
    text=$(printf '%s' "$1" | sed 's/[#%]/&&/g')
    if [ -n "${2-}" ]; then tmux display-message -c "$2" "$text"; else tmux display-message "$text"; fi
}

main "$@"
