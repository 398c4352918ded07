#!/usr/bin/env bash
# Installs missing dependencies for building ("build") or testing ("check") gpulse, or for its site ("site").
#
# A dependency is tested by its function (a program runs, a library is found, a test program links),
# not by its package name. If nothing is missing, a stamp file in build/ makes the next run a no-op.
# Supports apt (Debian, Ubuntu), dnf (Fedora) and pacman (Arch).
set -euo pipefail
cd "$(dirname "$0")/.."

goal=${1:-build}
stamp=build/.setup-$goal
probe=

# Package names, and how they were verified:
#   apt     installed on Debian 12 and 13
#   dnf     not installed. packages.fedoraproject.org has python3-pyte (40 to 45), libcmocka-devel (42 to
#           45) and clang-tools-extra, built from llvm (43 to 45). Spec files define libtsan (gcc),
#           inih-devel, and xmllint in libxml2. The others are required by spec files
#           of other projects for Fedora and related distributions.
#   pacman  not installed. archlinux.org has bats (formerly bash-bats) and libinih. Arch's own PKGBUILDs
#           of 2022 have the others.
#
# dependency    test                   apt              dnf                 pacman
build_needs='
compiler        have_compiler          gcc,libc6-dev    gcc,glibc-devel     gcc
meson           have_meson             meson            meson               meson
ninja           have_ninja             ninja-build      ninja-build         ninja
pkg-config      have_pkg_config        pkg-config       pkgconf-pkg-config  pkgconf
jansson         have_lib:jansson       libjansson-dev   jansson-devel       jansson
expat           have_lib:expat         libexpat1-dev    expat-devel         expat
ncursesw        have_lib:ncursesw      libncurses-dev   ncurses-devel       ncurses
inih            have_lib:inih          libinih-dev      inih-devel          libinih
libarchive      have_lib:libarchive    libarchive-dev   libarchive-devel    libarchive
sqlite          have_lib:sqlite3       libsqlite3-dev   sqlite-devel        sqlite
zstd            have_lib:libzstd       libzstd-dev      libzstd-devel       zstd
scdoc           have:scdoc             scdoc            scdoc               scdoc
'
check_needs='
cmocka          have_lib:cmocka        libcmocka-dev    libcmocka-devel     cmocka
bats>=1.5       have_bats              bats             bats                bats
python3         have:python3           python3          python3             python
sanitizers      have_sanitizers        gcc              libasan,libubsan,libtsan  gcc
clang           have_clang             clang            clang               clang
fuzzer          have_fuzzer            @fuzzer          compiler-rt         compiler-rt
clang-tidy      have:clang-tidy        clang-tidy       clang-tools-extra   clang
cppcheck        have:cppcheck          cppcheck         cppcheck            cppcheck
ps              have:ps                procps           procps-ng           procps-ng
xmllint         have:xmllint           libxml2-utils    libxml2             libxml2
pyte            have_module:pyte        python3-pyte     python3-pyte        python-pyte
prometheus-py   have_module:prometheus_client  python3-prometheus-client  python3-prometheus_client  python-prometheus_client
jsonschema-py   have_module:jsonschema  python3-jsonschema  python3-jsonschema  python-jsonschema
mypy            have:mypy              mypy             python3-mypy        mypy
nbconvert-py    have_module:nbconvert  python3-nbconvert  python3-nbconvert  jupyter-nbconvert
ipykernel-py    have_module:ipykernel  python3-ipykernel  python3-ipykernel  python-ipykernel
pandas-py       have_module:pandas      python3-pandas   python3-pandas      python-pandas
pip             have_module:pip        python3-pip      python3-pip         python-pip
setuptools      have_module:setuptools python3-setuptools  python3-setuptools  python-setuptools
wheel           have_module:wheel      python3-wheel    python3-wheel       python-wheel
abidiff         have:abidiff           abigail-tools    libabigail          libabigail
openblas        have_so:libopenblas.so.0  libopenblas0-pthread  openblas      openblas
opencl          have_so:libOpenCL.so.1 ocl-icd-libopencl1  ocl-icd          ocl-icd
pocl            have_pocl              pocl-opencl-icd  pocl                pocl
clblast         have_so:libclblast.so.1  libclblast1    clblast             clblast
journal-remote  have_journal_remote    systemd-journal-remote  systemd-journal-remote  systemd
opencl-headers  have_header:CL/cl.h    opencl-headers   opencl-headers      opencl-headers
'
site_needs='
markdown-py     have_module:markdown   python3-markdown python3-markdown    python-markdown
mandoc          have:mandoc            mandoc           mandoc              mandoc
'
# gpulse and its site also build without these, and tests that need them are skipped.
optional=' scdoc mandoc abidiff openblas opencl pocl clblast opencl-headers nbconvert-py ipykernel-py pandas-py '

case $goal in
build) needs=$build_needs ;;
check) needs=$build_needs$check_needs$site_needs ;;
site) needs=$build_needs$site_needs ;;
*)
    echo "setup.sh: unknown goal '$goal'; use build, check or site" >&2
    exit 2
    ;;
esac

say()
{
    echo "setup: $*" >&2
}

have()
{
    command -v "$1" >/dev/null 2>&1
}

have_lib()
{
    have_pkg_config && pkg-config --exists "$1" 2>/dev/null
}

have_pkg_config()
{
    have pkg-config
}

# A library that programs load when they need it.
have_so()
{
    python3 -c "import ctypes; ctypes.CDLL('$1')" 2>/dev/null
}

have_pocl()
{
    [ -n "$(ls /etc/OpenCL/vendors/*.icd 2>/dev/null)" ]
}

# What the doctor's tests write journals with.
have_journal_remote()
{
    [ -x /usr/lib/systemd/systemd-journal-remote ] || [ -x /lib/systemd/systemd-journal-remote ]
}

have_header()
{
    [ -e "/usr/include/$1" ]
}

# A module of the system's Python, which may not be the first in PATH.
have_module()
{
    python3 -c "import $1" 2>/dev/null || /usr/bin/python3 -c "import $1" 2>/dev/null
}

have_ninja()
{
    have ninja || have ninja-build || have samu
}

# The minimum meson version in meson.build.
meson_wanted()
{
    sed -n "s/.*meson_version: *'>= *\([0-9.]*\)'.*/\1/p" meson.build
}

have_meson()
{
    have meson &&
        printf '%s\n' "$(meson_wanted)" "$(meson --version 2>/dev/null)" | sort -V -C
}

# Compiles and links an empty program with the given compiler and options.
links()
{
    printf '#include <stdint.h>\n#include <stdio.h>\n%s\n' "$2" >"$probe/probe.c"
    # shellcheck disable=SC2086 # the compiler and its options are words
    $1 -o "$probe/probe" "$probe/probe.c" >/dev/null 2>&1
}

have_compiler()
{
    links "${CC:-cc}" 'int main(void) { return 0; }'
}

have_sanitizers()
{
    links "${CC:-cc} -fsanitize=address,undefined" 'int main(void) { return 0; }' &&
        links "${CC:-cc} -fsanitize=thread" 'int main(void) { return 0; }'
}

have_bats()
{
    have bats && printf '1.5\n%s\n' "$(bats --version | sed 's/[^0-9]*//')" | sort -V -C
}

have_clang()
{
    have clang
}

have_fuzzer()
{
    links 'clang -fsanitize=fuzzer,address,undefined' \
        'int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n); int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { return (int)(n && *d == 0) * 0; }'
}

satisfied()
{
    case $1 in
    *:*) "${1%%:*}" "${1#*:}" ;;
    *) "$1" ;;
    esac
}

# Sets `missing` (dependencies) and `packages` (their package names on this system).
find_missing()
{
    local need test apt dnf pacman column
    missing=() packages=() optional_packages=()
    while read -r need test apt dnf pacman; do
        [[ -n $need ]] || continue
        ! satisfied "$test" || continue
        missing+=("$need")
        case $manager in
        apt-get) column=$apt ;;
        dnf) column=$dnf ;;
        pacman) column=$pacman ;;
        *) continue ;;
        esac
        [[ $column != @fuzzer ]] || column=$(fuzzer_package)
        [[ -n $column ]] || continue
        if [[ $optional = *" $need "* ]]; then
            optional_packages+=("$column")
        else
            for column in ${column//,/ }; do
                [[ " ${packages[*]} " = *" $column "* ]] || packages+=("$column")
            done
        fi
    done <<<"$needs"
}

# The name of libFuzzer's package contains the version of clang. If clang is not installed yet, use
# Debian's package for the default version; without that, the second pass installs it.
fuzzer_package()
{
    local major
    if have clang; then
        major=$(clang -dumpversion)
        echo "libclang-rt-${major%%.*}-dev"
    elif apt-cache show libclang-rt-dev >/dev/null 2>&1; then
        echo libclang-rt-dev
    fi
}

is_optional_only()
{
    local need
    for need in "${missing[@]}"; do
        [[ $optional = *" $need "* ]] || return 1
    done
}

detect_manager()
{
    for manager in apt-get dnf pacman; do
        ! have "$manager" || return 0
    done
    manager=
}

# Called on every failure: prints the reason, what is missing, and the remedy; exits.
give_up()
{
    local all=("${packages[@]}" "${optional_packages[@]}")
    say "$1"
    say "missing: ${missing[*]}"
    if [[ ${#all[@]} -gt 0 ]]; then
        case $manager in
        apt-get) say "install as root: apt-get update && apt-get install ${all[*]}" ;;
        dnf) say "install as root: dnf install ${all[*]}" ;;
        pacman) say "install as root: pacman -Syu --needed ${all[*]}" ;;
        esac
    fi
    say "then run make again"
    exit 1
}

# Determines whether packages can be installed, and how: sets `obstacle` or `sudo`. Does not prompt,
# and changes nothing.
find_obstacle()
{
    sudo=() obstacle=
    if [[ -z $manager ]]; then
        obstacle="found neither apt-get nor dnf nor pacman"
    elif [[ $(id -u) -eq 0 ]]; then
        :
    elif ! have sudo; then
        obstacle="not root, and sudo is not installed"
    elif sudo -n true 2>/dev/null; then
        sudo=(sudo -n)
    elif [[ -t 0 && -z ${CI:-} ]]; then
        sudo=(sudo)
    else
        obstacle="not root, and sudo would ask for a password without a terminal"
    fi
}

# Prints the planned changes before they are made.
announce()
{
    local who="as root"
    [[ ${#sudo[@]} -eq 0 ]] || who="as root through sudo"
    say "missing: ${missing[*]}"
    [[ ${#packages[@]} -eq 0 ]] || say "installing with $manager, $who: ${packages[*]}"
    [[ ${#optional_packages[@]} -eq 0 ]] ||
        say "installing with $manager, $who, if offered: ${optional_packages[*]}"
}

install_with_manager()
{
    case $manager in
    apt-get)
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
            -o Dpkg::Use-Pty=0 -qq -y --no-install-recommends install "$@" </dev/null
        ;;
    dnf) "${sudo[@]}" dnf -q -y --setopt=install_weak_deps=False install "$@" </dev/null ;;
    pacman) "${sudo[@]}" pacman -S --needed --noconfirm --noprogressbar "$@" </dev/null ;;
    esac
}

# pacman's lists are refreshed only if there are none: newer lists require a full upgrade.
refresh_lists()
{
    [[ -z ${refreshed:-} ]] || return 0
    refreshed=1
    case $manager in
    apt-get) "${sudo[@]}" apt-get -o DPkg::Lock::Timeout=300 -qq update </dev/null ;;
    pacman)
        ! compgen -G '/var/lib/pacman/sync/*.db' >/dev/null || return 0
        "${sudo[@]}" pacman -Sy --noconfirm --noprogressbar </dev/null >/dev/null
        ;;
    esac || say "cannot refresh the package lists; using the existing ones"
}

install_missing()
{
    local log=$probe/install.log
    announce
    # sudo prompts for the password here, before anything changes.
    [[ ${sudo[*]} != sudo ]] || sudo -v || give_up "cannot install packages: sudo failed"
    refresh_lists
    if [[ ${#packages[@]} -gt 0 ]] && ! install_with_manager "${packages[@]}" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        give_up "$manager failed"
    fi
    # A failure here is not fatal: missing dependencies are reported at the end.
    [[ ${#optional_packages[@]} -eq 0 ]] ||
        install_with_manager "${optional_packages[@]}" >"$log" 2>&1 || true
}

give_up_on_leftovers()
{
    local reason="the packages of this system do not provide all dependencies"
    packages=() optional_packages=() # they are installed
    case " ${missing[*]} " in
    *' meson '*)
        reason="meson $(meson_wanted) or newer is needed, but this system has $(
            meson --version 2>/dev/null || echo none
        ); try: pipx install meson"
        ;;
    esac
    give_up "$reason"
}

# The stamp is valid until this script or meson.build changes, or a main program is removed.
stamp_is_good()
{
    [[ -f $stamp && ! scripts/setup.sh -nt $stamp && ! meson.build -nt $stamp ]] || return 1
    have "${CC:-cc}" && have meson && have_ninja && have pkg-config
}

stamp_is_good && exit 0

probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
detect_manager
find_missing
# Two passes, because a package name can depend on the version of another package.
tried=
for _ in 1 2; do
    wanted="${packages[*]} ${optional_packages[*]}"
    [[ ${#missing[@]} -gt 0 && $wanted != "$tried" ]] || break
    ! is_optional_only || [[ -z $tried ]] || break
    find_obstacle
    if [[ -n $obstacle ]]; then
        ! is_optional_only || break
        give_up "cannot install packages: $obstacle"
    fi
    install_missing
    tried=$wanted
    find_missing
done
is_optional_only || give_up_on_leftovers
[[ ${#missing[@]} -eq 0 ]] || say "continuing without ${missing[*]}"
mkdir -p "$(dirname "$stamp")"
: >"$stamp"
