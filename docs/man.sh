#!/bin/sh
# man.sh SCDOC PAGE PROGRAM WORDS...: the page that a program writes about itself.
set -eu
scdoc=$1
page=$2
shift 2
# Not a pipe: the program's failure must be seen.
"$@" >"$page.scd"
"$scdoc" <"$page.scd" >"$page"
