// jemalloc's settings for the programs; what the user sets in MALLOC_CONF comes after them and
// wins. A pass of a network takes and gives back blocks of many megabytes. Given back to the
// system, each of their pages is cleared and mapped anew the next time, which is a third of a
// program's CPU time.
//   dirty_decay_ms, muzzy_decay_ms   -1: what is unused is kept for the next block, however long
//   narenas                          1: threads share it, instead of each keeping its own
//   oversize_threshold               32 MiB: larger blocks lie apart, so that small ones do not
//                                    break up what the next large one could have
//   lg_extent_max_active_fit         64: a block is cut from an unused one of any larger size. With
//                                    a limit, unused blocks that have grown together serve no
//                                    small one again, and without decay memory grows for ever.
extern "C" {
extern const char* malloc_conf;  // jemalloc looks for this name
const char* malloc_conf =
    "narenas:1,oversize_threshold:33554432,dirty_decay_ms:-1,muzzy_decay_ms:-1,"
    "lg_extent_max_active_fit:64";
}
