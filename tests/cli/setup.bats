# scripts/setup.sh on machines that lack something: every program it calls is a stub.
# variants: default

load helpers

# machine_with ID COMMAND…: a copy of the script, and a PATH that has nothing but what the script
# needs of the system, an id that prints ID, and a stub for each COMMAND, which logs its call and
# succeeds. The stubs' standard output says nothing.
machine_with() {
    local tool id=$1
    shift
    mkdir -p tree/build bin
    cp -r "$HERE/scripts" "$HERE/meson.build" tree/
    for tool in bash cat dirname env mkdir mktemp rm sed sort tail; do
        ln -s "$(command -v "$tool")" "bin/$tool"
    done
    stub id "echo $id"
    for tool; do
        stub "$tool" "echo \"$tool \$*\" >>'$PWD/calls'"
    done
    touch calls
}

stub() {
    printf '#!%s\n%s\n' "$(command -v bash)" "$2" >"bin/$1"
    chmod +x "bin/$1"
}

set_up() {
    run --separate-stderr env -i PATH="$PWD/bin" TMPDIR="$PWD" CI=1 bash tree/scripts/setup.sh "$@"
}

# gave_up REASON HINT: the one message, and nothing was tried
gave_up() {
    status_is 1
    [ "$stderr" = "setup: cannot install packages: $1
setup: missing: compiler meson ninja pkg-config jansson expat ncursesw inih libarchive sqlite zstd scdoc
${2:+setup: install as root: $2
}setup: then run make again" ] || explain "another message"
    [ -z "$output" ] || explain "there is output"
    [ ! -s calls ] || explain "called: $(cat calls)"
    [ -z "$(ls -A tree/build)" ] || explain "a stamp is there"
}

APT='gcc libc6-dev meson ninja-build pkg-config libjansson-dev libexpat1-dev libncurses-dev libinih-dev libarchive-dev libsqlite3-dev libzstd-dev'
DNF='gcc glibc-devel meson ninja-build pkgconf-pkg-config jansson-devel expat-devel ncurses-devel inih-devel libarchive-devel sqlite-devel libzstd-devel'
PACMAN='gcc meson ninja pkgconf jansson expat ncurses libinih libarchive sqlite zstd'

@test "a system whose package manager is unknown" {
    machine_with 0
    set_up build
    gave_up 'found neither apt-get nor dnf nor pacman'
}

@test "neither root nor sudo" {
    machine_with 1000 apt-get
    set_up build
    gave_up 'not root, and sudo is not installed' "apt-get update && apt-get install $APT scdoc"
    mv bin/apt-get bin/dnf
    set_up build
    gave_up 'not root, and sudo is not installed' "dnf install $DNF scdoc"
    mv bin/dnf bin/pacman
    set_up build
    gave_up 'not root, and sudo is not installed' "pacman -Syu --needed $PACMAN scdoc"
}

@test "sudo would ask for a password without a terminal" {
    machine_with 1000 apt-get
    stub sudo '[ "$1" != -n ] || exit 1; echo "sudo $*" >>calls'
    set_up build
    gave_up 'not root, and sudo would ask for a password without a terminal' \
        "apt-get update && apt-get install $APT scdoc"
}

@test "the planned installation is printed first" {
    machine_with 0
    stub apt-get 'echo "[called] $*" >&2'
    set_up build
    status_is 1 # the stub installs nothing
    [[ $stderr = "setup: missing: compiler meson ninja pkg-config jansson expat ncursesw inih libarchive sqlite zstd scdoc
setup: installing with apt-get, as root: $APT
setup: installing with apt-get, as root, if offered: scdoc
[called] "*' update'* ]] || explain "another message"
}

@test "root through sudo" {
    machine_with 1000 apt-get
    stub sudo "[ \"\$*\" = '-n true' ] || echo \"sudo \$*\" >>'$PWD/calls'"
    set_up build
    status_is 1
    complains '^setup: installing with apt-get, as root through sudo: gcc '
    [ "$(grep -c '^sudo -n' calls)" -eq 3 ] # update, the packages, the optional ones
    [ "$(grep -vc '^sudo -n' calls)" -eq 0 ]
}

@test "an installation that fails, and one that leaves something out" {
    machine_with 0
    stub dnf 'echo the reason; exit 1'
    set_up build
    status_is 1
    complains '^the reason$'
    complains '^setup: dnf failed$'
    complains "^setup: install as root: dnf install $DNF scdoc\$"
    stub dnf :
    set_up build
    status_is 1
    complains '^setup: meson [0-9.]+ or newer is needed, but this system has none'
    [ -z "$(ls -A tree/build)" ]
}

# All that a build needs, but not scdoc.
complete_but_for_scdoc() {
    local tool
    for tool in cc ninja pkg-config; do
        stub "$tool" :
    done
    stub meson 'echo 99.9'
}

@test "an optional dependency is not an error" {
    machine_with 1000
    complete_but_for_scdoc
    set_up build
    status_is 0
    [ "$stderr" = "setup: continuing without scdoc" ]
    [ -f tree/build/.setup-build ]
}

@test "where nothing is missing nothing is said, and nothing is looked for again" {
    machine_with 1000
    complete_but_for_scdoc
    stub scdoc :
    set_up build
    status_is 0
    is_quiet
    rm bin/scdoc
    set_up build
    status_is 0
    is_quiet
}
