# Completion of gpulse for fish. The program provides the candidates: "gpulse __complete -- WORDS".

function __gpulse_complete
    set -l typed (commandline -opc) (commandline -ct)
    for line in ($typed[1] __complete -- $typed[2..-1] 2>/dev/null)
        switch $line
            case FILES
                __fish_complete_path $typed[-1]
            case COMMANDS
                __fish_complete_command
            case '*'
                printf '%s\n' $line
        end
    end
end

complete -c gpulse -f -a '(__gpulse_complete)'
