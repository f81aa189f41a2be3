// serve: trained models behind HTTP. See `serve --help`.
#include "cli/program.h"

int main(int argc, char** argv) {
  cytra::cli::Program program{
      "serve",
      "answer requests over HTTP with trained models",
      "  serve checkpoint.ckpt_path=logs/.../best.ckpt\n"
      "  serve checkpoint.ckpt_path=logs/.../best.ckpt port=0 --json\n"
      "  serve models='{cells: a.ckpt, nuclei: b.ckpt}' host=0.0.0.0 token=secret\n"
      "  curl -H \"Authorization: Bearer $TOKEN\" --data-binary @image.tif "
      "http://127.0.0.1:8000/predict -o mask.tif",
      "serve",
      "cytra_serve",
      {}};
  program.needs_words = false;  // it serves the models at hand
  return cytra::cli::run(program, argc, argv);
}
