# The host of a simulated machine: people, processes, reservations, files; by the readers that read
# a real one.
# variants: asan

load helpers

# every MACHINE COLUMNS: no process of the machine has a hole in these columns.
every() {
    gpulse --sim "$1" query "$2" --processes -f csv --no-header
    says_not '\[|^$|(^|,) *-?(,|$)'
}

@test "each process of a machine with a host has what a real one has" {
    for machine in h100x8 desktop inference; do
        every $machine pid,process.user,process.command,process.cpu,process.rss
        every $machine process.start_time,process.threads,process.ppid,process.cwd
        every $machine process_name,used_gpu_memory
    done
}

@test "ps, top and status say whose the processes are" {
    gpulse --sim h100x8 ps
    status_is 0
    says '^4190001 +mia +48213\.0 +0 +C +[0-9]+ +[0-9]+ +71\.4G +0 +0 +1[0-9]{2} +4[0-9]\.[0-9]G +7h[0-9]{2}m +0s +python train\.py'
    says '^4190006 +ana +- +5 +C '
    gpulse --sim h100x8 ps -u mia
    says_not ' - '
    gpulse --sim desktop status -cup --no-header
    says 'root:Xorg/4188101\(298MiB\)'
    says 'sam:python/4190001\(9830MiB\)'
    gpulse --sim inference top --plain -c 1
    status_is 0
    says '4190003 .*svc .*tritonserver'
}

@test "parents, containers and what a process was started in" {
    gpulse --sim h100x8 ps --tree
    says '^ +1 +root .*/sbin/init$'
    says '^4189103 +mia .*torchrun'
    gpulse --sim h100x8 query pid,process.origin,process.container --processes -f csv --no-header
    says '^4190002,"?rank 1/4'
    says '^4190001,.*slurm:48213'
    says '^4190006,"?notebook ablation\.ipynb'
    says '^4190005,.*docker:3f1c9a57b2d0'
    gpulse --sim a100-mig query process.container_name --processes -f csv --no-header
    says '^serving/chat-7d9f$'
}

@test "the numbers of the computer are the simulated one's" {
    gpulse --sim h100x8 query host.name,host.cpu.count,host.memory.total,host.uptime -i 0 -f csv --no-header
    [[ $output =~ ^gpu07,192,2163589[0-9]+,354[0-9]+$ ]] || explain "not gpu07's"
    gpulse --sim t4 query host.name -i 0 -f csv --no-header
    [ "$output" = "$(hostname)" ]
}

@test "reservations and the waiting line, which pick respects" {
    gpulse --sim h100x8 queue
    status_is 0
    says '^running +- +mia +4189103 +0-3 +7h[0-9]{2}m +16h[0-9]{2}m +llama-8b$'
    says '^waiting +1 +ray +4189401 +0-3 +90m '
    gpulse --sim h100x8 pick --explain
    says '^GPU 0: .*reserved by llama-8b \(mia\)$'
    gpulse --sim t4 queue
    [ -z "$output" ]
}

@test "a sick machine: every command has something to say" {
    gpulse --sim sick status --no-header
    says '^\[2\].*\| lost: reset or reboot needed; see gpulse doctor$'
    says 'lee\(48100MiB\)'
    gpulse --sim sick doctor
    status_is 2
    says '^fail  log\.xid: Xid 79 of GPU 2: '
    [ "$(grep -oE '^(fail|warn)' <<<"$output" | uniq)" = $'fail\nwarn' ] # failures first
    says '^fail  health\.lost: GPU 2'
    says '^warn  health\.remap: GPU 3'
    says '^fail  health\.ecc: GPU 3'
    says '^fail  health\.throttle: GPU 5'
    says '^warn  health\.unattributed: GPU 6'
    gpulse --sim sick ps --explain
    says '4190005 lee python loader\.py --workers 8: has the GPU open'
    gpulse --sim sick reclaim --yes
    status_is 0
    says '4190005 +lee .* python loader\.py --workers 8$'
    complains 'nothing was terminated \(simulated processes cannot be signalled; gpulse sim load starts real ones\)$'
    gpulse --sim sick queue
    says '^waiting +1 +tom .* 2 \(any of 0-3\) '
    [ "$(sed -n '/^waiting/,$p' <<<"$output" | sed 1d)" = "$(printf '%16s%s\n' '' 'GPUs 0 and 1: reserved by pretrain (eva)' '' 'GPU 2: lost: reset or reboot needed; see gpulse doctor' '' 'GPU 3: needs a GPU reset to remap a faulty memory row')" ] || explain 'other reasons'
    gpulse --sim sick queue -f json
    json_is '[l["waits_for"][:1] for l in d["leases"]]' "[[], [], [{'gpus': '0,1', 'reason': 'reserved by pretrain (eva)'}]]"
    gpulse --sim sick pick --explain
    says '^GPU 2: unavailable: lost: reset or reboot needed; see gpulse doctor$'
    says '^GPU 3: unavailable: needs a GPU reset to remap a faulty memory row$'
    says '^GPU 5: busy: '
    gpulse --sim sick pick -f json
    json_is 'd["state"], d["gpus"][3]["state"]' "('free', 'unavailable')"
}

@test "the others are well" {
    for machine in h100x8 desktop inference a100-mig laptop-asleep; do
        gpulse --sim $machine doctor
        status_is 0
        says ' 0 failed '
    done
}

@test "a laptop's GPU sleeps, and is not woken" {
    GPULSE_SIM_COUNT=$PWD/calls gpulse --sim laptop-asleep status --no-header
    says 'asleep to save power'
    [ ! -e calls ]
}

@test "a simulated process is never signalled" {
    for which in '4190001 --yes' '--user mia --yes' '--name train.py --tree'; do
        gpulse --sim h100x8 kill $which
        status_is 0
        says '^4190001 +mia '
        complains 'nothing was terminated \(simulated processes cannot be signalled; gpulse sim load starts real ones\)$'
    done
    gpulse --sim h100x8 suspend 4190001 --yes
    status_is 3
    complains 'pid 4190001 is simulated'
}

@test "a real process with the pid of a simulated one is left alone" {
    started sleep 1000
    machine h100 "m['host']['processes'].append({'pid': $pid, 'user': 'mia', 'command': ['x']}); m['workload'][0]['pid'] = $pid"
    gpulse --sim ./m.json kill "$pid" --yes
    status_is 0
    complains 'nothing was terminated \(simulated .*'
    kill -0 "$pid"
    gpulse --sim ./m.json query process.user --processes -i 0 -f csv --no-header
    [ "$output" = mia ]
}

@test "a real process on a simulated GPU is shown as what it is" {
    listed() {
        gpulse --sim h100x8 query pid --processes -i 6 -f csv --no-header
        [ "$output" = "$pid" ]
    }
    started "$GPULSE" sim load -m h100x8 -g 6 --mem 1GiB --for 600s
    until_true listed
    gpulse --sim h100x8 query pid,process.user,process.ppid,process.start_time --processes -i 6 -f csv --no-header
    [[ $output =~ ^$pid,$(id -un),$$,$(date -u +%Y)- ]] || explain "not this process"
    gpulse --sim h100x8 ps --tree -i 6
    says "^ *$pid "
    gpulse --sim h100x8 kill "$pid" --yes
    status_is 0
    finish
}

@test "values move, and stand still when they are to" {
    gpulse --sim h100x8 query process.cpu --processes -i 0 -c 2 -n 300ms -f csv --no-header
    status_is 0
    says '^1[0-9]{2}(\.[0-9]+)?$'
    gpulse --sim h100x8 --sim-still query process.rss --processes -i 0 -f csv --no-header
    first=$output
    gpulse --sim h100x8 --sim-still query process.rss --processes -i 0 -f csv --no-header
    [ "$output" = "$first" ]
}

@test "a job that begins and ends has a process of its own each time" {
    machine h100 "m['workload'][0].update(every_s=2, runs_s=1)"
    pids=0
    look() {
        gpulse --sim ./m.json query pid --processes -i 0 -f csv --no-header
        [ -n "$output" ] && [ "$output" != "$pids" ] || return 1
        seen=$((seen + 1))
        pids=$output
        [ $seen -ge 2 ]
    }
    seen=0
    until_true look
    gpulse --sim ./m.json --sim-still query pid,process.user --processes -i 0 -f csv --no-header
    [ "$output" = 4190001,mia ]
}

@test "--root is read, not the machine's host" {
    mkdir -p root/proc
    gpulse --sim h100x8 --root root query process.user --processes -i 0 -f csv --no-header
    [ "$output" = '[N/A]' ]
}

@test "a folder that others could have prepared is not read" {
    gpulse --sim h100x8 status
    chmod 777 "$GPULSE_SIM_STATE"
    gpulse --sim h100x8 query process.user --processes -i 0 -f csv --no-header
    says_not mia
    chmod 700 "$GPULSE_SIM_STATE"
    mv "$GPULSE_SIM_STATE/h100x8.host" elsewhere
    ln -s "$PWD/elsewhere" "$GPULSE_SIM_STATE/h100x8.host"
    echo 'eve:x:61001:61001::/:/bin/sh' >elsewhere/etc/passwd
    gpulse --sim h100x8 query process.user --processes -i 0 -f csv --no-header
    says_not eve
}

@test "no file of a machine is written outside of its folder" {
    machine h100 "m['host']['files']['/tmp/gpulse-host-test-$$'] = 'x'"
    gpulse --sim ./m.json status
    gpulse --sim ./m.json status
    [ ! -e "/tmp/gpulse-host-test-$$" ]
}

@test "what is wrong in a host is named with its place" {
    bad() {
        machine h100 "$1"
        gpulse --sim ./m.json status
        status_is 2
        grep -Fq -- "$2" <<<"$stderr" || explain "the message does not say: $2"
    }
    bad "m['host'] = 1" 'host: expected an object'
    bad "del m['host']['name']" 'host: name: is missing'
    bad "m['host']['cpus'] = 0" 'host: cpus: expected a number from 1 to 4096'
    bad "m['host']['hats'] = 1" "host: unknown key 'hats'"
    bad "m['host']['processes'][2]['user'] = 'eve'" 'host: processes[2]: user: expected the name of one of the users'
    bad "m['host']['processes'][2]['command'] = 'x'" 'host: processes[2]: command: expected an array of strings'
    bad "m['host']['processes'][2]['state'] = 'Q'" 'host: processes[2]: state: expected R, S, D'
    bad "m['host']['processes'][2]['environment'] = {'A': 1}" 'host: processes[2]: environment: expected an object of strings'
    bad "m['host']['leases'][0]['gpus'] = [64]" 'host: leases[0]: gpus: expected numbers from 0 to 63'
    bad "m['host']['files']['../x'] = ''" "host: files: '../x': expected an absolute path"
    bad "m['host']['users']['mia'] = -1" 'host: users: mia: expected a number from 0 on'
    bad "m['workload'][0]['every_s'] = 10" 'workload[0].runs_s: is missing'
}

@test "the queue of some GPUs, and while GPUs hang" {
    gpulse --sim h100x8 queue -i 7
    status_is 0
    [ -z "$output" ]
    complains 'no reservations of these GPUs; start a job with gpulse run -- COMMAND$'
    gpulse --sim h100x8 queue -i 0
    says '^running +- +mia +4189103 +0-3 '
    says '^ +GPUs 0-3: reserved by llama-8b \(mia\)$'
    gpulse --sim h100x8 queue -i 9
    status_is 3
    gpulse queue --cancel
    status_is 2
    complains 'to cancel one: kill PID'
    fault h100x8 --gpu 3 hang=30s
    gpulse --sim h100x8 queue -i 3
    says '^running +- +mia +4189103 +0-3 '
    fault h100x8 --gpu 2 hang=30s
    gpulse --sim h100x8 queue
    says '^running +- +mia +4189103 +0,1,\? '
}

@test "what would be terminated on a simulated machine, and what cannot be" {
    gpulse --sim h100x8 kill -u mia --dry-run
    status_is 0
    says '^4190001 +mia '
    complains 'nothing was terminated \(--dry-run\)$'
    gpulse --sim h100x8 kill -u mia --yes
    status_is 0
    [ "$(grep -c ' mia ' <<<"$output")" -eq 4 ]
    complains '^gpulse: nothing was terminated \(simulated processes cannot be signalled; .*'
    gpulse --sim sick reclaim --dry-run
    status_is 0
    says '^  The GPU does not respond, so nothing is known\.$'
    says_not 'unknown amount'
    says '^  81559 MiB = 37200 MiB used \+ 480 MiB reserved by the driver \+ 43879 MiB free$'
    says '^4190005 +lee '
    gpulse --sim sick reclaim --yes --wait-free 79GiB --wait 100ms
    status_is 0
    complains '^gpulse: nothing was terminated \(simulated processes cannot be signalled; .*'
    complains_not 'after 0 s'
    gpulse --sim sick mem -i 6
    says ' 81559 +480 +37200 +43879 +0 +37200$'
}

@test "a MIG instance by its id" {
    for command in status ps pick; do
        gpulse --sim a100-mig $command -i 0:1
        status_is 0
        gpulse --sim a100-mig $command -i 0:77
        fails 3 "no GPU matches '0:77'; .*"
    done
    gpulse --sim a100-mig query uuid -i 0:1 -f csv --no-header
    [ "$output" = "$("$GPULSE" --sim a100-mig pick -i 0:1)" ]
}
