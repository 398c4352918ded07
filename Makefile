# A front end to meson. `make help` lists the targets.
.DEFAULT_GOAL := build
.PHONY: build run check quick check-distros mutate bench soak install site clean help

PREFIX ?= /usr/local

build:                ## build into build/ (installs missing build dependencies)
	@scripts/setup.sh build
	@PREFIX='$(PREFIX)' scripts/build.sh default

run:                  ## build, then run gpulse on the GPUs of this machine, or on simulated ones
	@PREFIX='$(PREFIX)' scripts/run.sh

check:                ## run all tests
	@scripts/setup.sh check
	@tests/run

quick:                ## run the unit tests, and the tests of commands with uncommitted changes
	@scripts/setup.sh check
	@tests/run --quick

check-distros:        ## build and test in Debian 12 and 13 chroots (needs root and debootstrap)
	@tests/distros

mutate:               ## plant random bugs, and list those that no test detects
	@scripts/setup.sh check
	@tests/mutate $(MUTATE)

bench:                ## run the benchmarks on an optimized build
	@scripts/setup.sh check
	@scripts/bench.sh

soak:                 ## run hours of fuzzing, fault injection, static analysis and stress tests
	@scripts/setup.sh check
	@tests/run --again --long

install: build        ## install below PREFIX (default /usr/local); honors DESTDIR
	@DESTDIR='$(DESTDIR)' meson install -C build --no-rebuild --quiet
	@echo 'installed below $(DESTDIR)$(PREFIX)'

site: build           ## build the handbook as a static site into build/site
	@scripts/setup.sh site
	@scripts/site.py build/site --man build/docs

clean:                ## remove all build directories
	@rm -rf build build-*

help:                 ## show this list
	@sed -n 's/^\([a-z-]*\):.*## */\1\t/p' Makefile | while IFS='	' read -r target text; do \
	    printf '  make %-13s %s\n' "$$target" "$$text"; done
