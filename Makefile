# The front door; meson does the work. `make help` lists what there is.
.DEFAULT_GOAL := build
.PHONY: build run check quick check-distros mutate bench soak install clean help

PREFIX ?= /usr/local

build:                ## build into build/ (installs what the build needs, if it is missing)
	@scripts/setup.sh build
	@PREFIX='$(PREFIX)' scripts/build.sh default

run: build            ## build, then show the GPUs of this machine, or simulated ones
	@scripts/run.sh

check:                ## run every test
	@scripts/setup.sh check
	@tests/run

quick:                ## run the unit tests, and those of commands that uncommitted changes concern
	@scripts/setup.sh check
	@tests/run --quick

check-distros:        ## build and test in Debian 12 and 13 roots (needs root and debootstrap)
	@tests/distros

mutate:               ## plant random bugs, and list those that no test sees
	@scripts/setup.sh check
	@tests/mutate $(MUTATE)

bench:                ## measure an optimised build
	@scripts/setup.sh check
	@scripts/bench.sh

soak:                 ## hours of fuzzing, fault injection, deep analysis, and churn
	@scripts/setup.sh check
	@tests/run --again --long

install: build        ## install below PREFIX (default /usr/local); DESTDIR is obeyed
	@DESTDIR='$(DESTDIR)' meson install -C build --no-rebuild --quiet
	@echo 'installed below $(DESTDIR)$(PREFIX)'

clean:                ## remove everything that was built
	@rm -rf build build-*

help:                 ## this list
	@sed -n 's/^\([a-z-]*\):.*## */\1\t/p' Makefile | while IFS='	' read -r target text; do \
	    printf '  make %-13s %s\n' "$$target" "$$text"; done
