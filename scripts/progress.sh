# Sourced by scripts: `doing TEXT COMMAND...` runs a command and shows that it goes on, at least once a second.
#
# On a terminal one line shows the seconds and what the command printed last; elsewhere a dot is added each second. What
# it prints is kept, and shown only if it fails. The command stays in the foreground, so that it gets signals and can
# ask for a password.

doing() {
    local text=$1 log shown code=0 began=$SECONDS
    shift
    log=$(mktemp)
    _show "$text" "$log" &
    shown=$!
    "$@" >"$log" 2>&1 || code=$?
    kill "$shown" 2>/dev/null
    wait "$shown" 2>/dev/null || true
    if [ -t 2 ]; then printf '\r\033[Ksetup: %s, %d s\n' "$text" $((SECONDS - began)) >&2; else printf ' %d s\n' $((SECONDS - began)) >&2; fi
    if [ "$code" != 0 ]; then
        {
            printf 'error: this failed, with exit code %d: %s\n' "$code" "$text"
            tail -n 20 "$log" | sed 's/^/  saw:  /'
        } >&2
    fi
    rm -f "$log"
    return "$code"
}

# Ends with the script that started it, also when that is killed: a process in the background gets no Ctrl-C.
_show() {
    local began=$SECONDS columns
    columns=$(stty size 2>/dev/null </dev/tty | cut -d' ' -f2) || true
    if [ "${columns:-0}" -lt 40 ]; then columns=80; fi
    if [ ! -t 2 ]; then printf 'setup: %s ' "$1" >&2; fi
    while kill -0 $$ 2>/dev/null; do
        if [ -t 2 ]; then
            local line
            line="setup: $1 ($((SECONDS - began)) s) $(tail -n 1 "$2" 2>/dev/null | tr '\r\t' '\n ' | tail -n 1)"
            printf '\r\033[K%s' "${line:0:$((columns - 1))}" >&2
        fi
        sleep 1
        if [ ! -t 2 ]; then printf . >&2; fi
    done
}
