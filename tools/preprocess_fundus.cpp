// preprocess_fundus: photographs of retinas at one place and size. See `preprocess_fundus --help`.
#include "cli/program.h"

int main(int argc, char** argv) {
  return cytra::cli::run(
      {"preprocess_fundus",
       "find the retina in photographs; write it with one position, size and contrast",
       "  preprocess_fundus data.path=photographs paths.output_dir=results\n"
       "  preprocess_fundus data.path=photographs paths.output_dir=small fundus.size=128 "
       "fundus.contrast=false",
       "preprocess_fundus",
       "cytra_preprocess_fundus",
       {}},
      argc,
      argv);
}
