#!/usr/bin/env bash
# Configures and builds one variant; with --tests, also its unit tests. Prints output only on failure.
#
#   default  build/          the target of `make`; PREFIX, if set, is the installation prefix
#   release  build-release/  the same with -Werror, for our own checks
#   asan     build-asan/     with AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan     build-tsan/     with ThreadSanitizer
set -euo pipefail
cd "$(dirname "$0")/.."

variant=${1:-default}
dir=build-$variant
options=()
case $variant in
default)
    dir=build
    options=("--prefix=${PREFIX:-/usr/local}")
    ;;
release) options=(-Dwerror=true) ;;
# No -Werror here: the sanitizers' instrumentation causes false warnings in gcc.
asan) options=('-Db_sanitize=address,undefined' -Db_lundef=false -Doptimization=1) ;;
tsan) options=(-Db_sanitize=thread -Db_lundef=false -Doptimization=1) ;;
*)
    echo "build.sh: unknown variant '$variant'; use default, release, asan or tsan" >&2
    exit 2
    ;;
esac

log=$dir/build.log
mkdir -p "$dir"

fail()
{
    cat "$log" >&2
    echo "build.sh: cannot build the $variant variant in $dir/" >&2
    exit 1
}

# Whether setup.sh has installed something since the last configuration, so that meson must rerun.
installed_since()
{
    local stamp
    for stamp in build/.setup-*; do
        [[ ! $stamp -nt $dir/build.ninja ]] || return 0
    done
    return 1
}

if [[ ! -f $dir/build.ninja ]]; then
    echo "configuring $dir/"
    meson setup "${options[@]}" "$dir" >"$log" 2>&1 </dev/null || fail
    echo "${PREFIX:-/usr/local}" >"$dir/.prefix"
elif [[ $variant = default && -n ${PREFIX:-} && $PREFIX != "$(cat "$dir/.prefix")" ]]; then
    meson configure "$dir" "--prefix=$PREFIX" >"$log" 2>&1 </dev/null || fail
    echo "$PREFIX" >"$dir/.prefix"
elif installed_since; then
    meson setup --reconfigure "$dir" >"$log" 2>&1 </dev/null || fail
fi
if [[ ${2:-} = --tests && ! -f $dir/.with-tests ]]; then
    meson configure "$dir" -Dtests=true >"$log" 2>&1 </dev/null || fail
    touch "$dir/.with-tests"
fi

ninja=("$(command -v ninja || command -v ninja-build || command -v samu)" -C "$dir")
# The build runs programs that it has built. With ThreadSanitizer they may fail to start under
# strong address space randomisation.
if [[ $variant = tsan ]] && setarch "$(uname -m)" -R true 2>/dev/null; then
    ninja=(setarch "$(uname -m)" -R "${ninja[@]}")
fi

# Since meson 1.7, `all` does not include targets that only tests need.
[[ ${2:-} != --tests ]] || ninja+=(all meson-test-prereq)

if [[ -t 1 ]]; then
    "${ninja[@]}" || exit 1
else
    "${ninja[@]}" >"$log" 2>&1 </dev/null || fail
fi
