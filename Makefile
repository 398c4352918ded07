# The front door; meson does the work. `make help` lists what there is.
.DEFAULT_GOAL := build
.PHONY: build run check bench soak install clean help

PREFIX ?= /usr/local

build:                ## build into build/ (installs what the build needs, if it is missing)
	@scripts/setup.sh build
	@PREFIX='$(PREFIX)' scripts/build.sh default

run: build            ## build, then show the GPUs of this machine, or simulated ones
	@scripts/run.sh

check:                ## run every test
	@scripts/setup.sh check
	@tests/run

bench:                ## measure an optimised build
	@scripts/setup.sh check
	@scripts/bench.sh

soak: build           ## an hour of processes that come and go, and of faults
	@GPULSE=build/gpulse GPULSE_BUILD=build GPULSE_SOAK=3600 tests/check_soak.py

install: build        ## install below PREFIX (default /usr/local); DESTDIR is obeyed
	@DESTDIR='$(DESTDIR)' meson install -C build --no-rebuild --quiet
	@echo 'installed below $(DESTDIR)$(PREFIX)'

clean:                ## remove everything that was built
	@rm -rf build build-asan build-tsan build-release

help:                 ## this list
	@sed -n 's/^\([a-z]*\):.*## */\1\t/p' Makefile | while IFS='	' read -r target text; do \
	    printf '  make %-9s %s\n' "$$target" "$$text"; done
