# Helpers that tools/setup, tools/demo and tools/test source.

trap 'exit 130' INT  # the terminal interrupts the children too; bash waits for the one in front

# Ends the processes that this one started and that theirs started, such as ninja, after a `kill` too.
descendants_of() {  # PID
  local child
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    echo "$child"
    descendants_of "$child"
  done
}
end_descendants() { kill $(descendants_of $$) 2>/dev/null || true; }
trap end_descendants EXIT

readonly kMegabytesPerJob=1700  # a batch of files in GCC 12 with the address sanitizer
memory_info=/proc/meminfo
memory_limit=/sys/fs/cgroup/memory.max  # of a container

# Prints how many compilers may run at a time: one on each core, and no more than memory holds.
count_jobs() {
  local cores free limit jobs
  cores=$(nproc)
  free=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' "$memory_info")
  limit=$(cat "$memory_limit" 2>/dev/null || true)
  if [[ $limit =~ ^[0-9]+$ ]] && ((limit >> 20 < free)); then free=$((limit >> 20)); fi
  jobs=$((free / kMegabytesPerJob))
  if ((jobs >= cores)); then
    jobs=$cores
  else
    if ((jobs < 1)); then jobs=1; fi
    echo "build: $jobs at a time on $cores cores, because $free MB of memory are free and each takes up to $kMegabytesPerJob" >&2
  fi
  echo "$jobs"
}

# require_space FOLDER MEGABYTES PURPOSE: exits where the file system of FOLDER has less.
require_space() {
  local free mount
  read -r free mount < <(df -Pm "$1" | awk 'NR == 2 { print $4, $6 }')
  if ((free < $2)); then
    echo "$3 needs $2 MB in $1; its file system, mounted on $mount, has $free MB free" >&2
    exit 1
  fi
}

# configure PRESET CMAKE_ARGUMENT…: from nothing where build/PRESET is of another version or another path.
configure() {
  local preset=$1 output
  echo "configure: preset $preset"
  shift
  if ! output=$(cmake --preset "$preset" "$@" 2>&1) && [ -e "build/$preset/CMakeCache.txt" ]; then
    echo "configure: build/$preset is not of this version and path: configuring from nothing"
    output=$(cmake --preset "$preset" --fresh "$@" 2>&1)
  fi || { echo "$output" >&2; exit 1; }
  ninja -C "build/$preset" -t cleandead >/dev/null  # products that this version no longer has
}

# build PRESET MEGABYTES BUILD_ARGUMENT…: builds a preset whose folder takes so much.
build() {
  local preset=$1 megabytes=$2 present
  shift 2
  present=$(du -sm "build/$preset" | cut -f 1)
  require_space "build/$preset" $((megabytes > present ? megabytes - present : 100)) "build: preset $preset"
  NINJA_STATUS="build [%f/%t] " cmake --build --preset "$preset" -j "$(count_jobs)" "$@"
}
