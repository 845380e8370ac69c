# Short names for the usual commands. On a fresh Debian 12, `make demo` and `make test` first install what is missing.

PACKAGES := g++ cmake ninja-build pkg-config libsystemc-dev libboost-program-options-dev libfmt-dev catch2 nlohmann-json3-dev libsqlite3-dev \
            zlib1g-dev parallel python3 locales gtkwave
RELEASE := build/release
PROGRAM := $(RELEASE)/src/cli/contraflow

.PHONY: demo test fuzz bench build configure deps format format-check clean

demo: configure
	@cmake --build --preset release --target contraflow_program
	$(PROGRAM) run -c configs/u50-2enc.ini --steps 3

test: build
	ctest --preset release -j $$(nproc)

# Random designs run clocked and leap, which must agree: make fuzz N=10000 SEED=1.
N := 1000
SEED := 1
fuzz: build
	$(RELEASE)/tests/system/fuzz_modes $(N) $(SEED)

# Eigen gives the arithmetic floor to compare with. The whole sweep: make bench POINTS=10000.
POINTS := 1000
bench:
	@cmake/install_packages.sh libeigen3-dev
	@$(MAKE) --no-print-directory build
	$(RELEASE)/bench/contraflow_bench
	$(RELEASE)/bench/contraflow_dram_bench
	bench/sweep.sh $(PROGRAM) configs/u50-2enc.ini $(POINTS)

build: configure
	@cmake --build --preset release

configure: deps
	@cmake --preset release --log-level=WARNING

deps:
	@cmake/install_packages.sh $(PACKAGES)

SOURCES = $(shell find include src models tests bench examples -name '*.cpp' -o -name '*.h' 2>/dev/null | sort)

format:
	clang-format -i $(SOURCES)

format-check:
	clang-format --dry-run --Werror $(SOURCES)

clean:
	rm -rf build
