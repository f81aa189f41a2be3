// export_model: writes a trained model for other programs. See `export_model --help`.
#include "cli/program.h"

int main(int argc, char** argv) {
  return cytra::cli::run(
      {"export_model",
       "write a trained model as safetensors, TorchScript, ONNX or OpenVINO",
       "  export_model checkpoint.ckpt_path=logs/.../best.ckpt output=weights.safetensors\n"
       "  export_model checkpoint.ckpt_path=logs/.../best.ckpt format=torchscript output=model.pt\n"
       "  export_model checkpoint.ckpt_path=weights.pth checkpoint.config=logs/.../run "
       "format=torchscript output=model.pt",
       "export_model",
       "cytra_export_model",
       {}},
      argc,
      argv);
}
