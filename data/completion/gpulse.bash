# Completion of gpulse for bash. The program provides the candidates: "gpulse __complete -- WORDS".

_gpulse()
{
    local word candidate cut i
    local -a words=()
    COMPREPLY=()

    # Bash splits words at '=' and ':'; gpulse needs them whole.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((${#words[@]})) && [[ $word = [=:]* || ${words[-1]} = *[=:] ]] && ((i > 1)); then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    ((${#words[@]})) || words=("")

    # The text before the last split stays on the line: candidates must not repeat it.
    word=${words[-1]}
    cut=${word%"${word##*[=:]}"}

    while IFS= read -r candidate; do
        case $candidate in
        FILES)
            compopt -o filenames 2>/dev/null
            while IFS= read -r candidate; do
                COMPREPLY+=("$candidate")
            done < <(compgen -f -- "${word#"$cut"}")
            ;;
        COMMANDS)
            while IFS= read -r candidate; do
                COMPREPLY+=("$candidate")
            done < <(compgen -c -- "${word#"$cut"}")
            ;;
        ?*)
            candidate=${candidate%%$'\t'*}
            COMPREPLY+=("${candidate#"$cut"}")
            ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete -- "${words[@]}" 2>/dev/null)

    # A list of metrics continues after a comma, a control after its '=': add no blank.
    [[ $word != *,* && ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}

complete -F _gpulse gpulse
