// Source: bioimageio.core's _ops_stardist.py and _ops_cellpose.py.
#include "inference/imported/bioimageio/objects.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "config/options.h"

namespace cytra::inference {
namespace {

using config::Node;

/// A map of one entry, for config::parse_value.
Node instance_decoder(const std::string& method, Node options) {
  Node decoder = Node::make_map();
  decoder.set("_target_", Node::make_string("InstanceDecoder"));
  decoder.set("method", Node::make_string(method));
  decoder.set(method, std::move(options));
  return decoder;
}

struct StardistArguments {
  double prob_threshold = 0, nms_threshold = 0;
  int64_t n_rays = 0;
  std::vector<int64_t> grid;
  Node b;
  std::vector<double> anisotropy;
  std::optional<int64_t> overlap_label;
  void visit(auto& v) {
    v("prob_threshold", prob_threshold, "StarDist's prob_thresh", config::required);
    v("nms_threshold", nms_threshold, "StarDist's nms_thresh", config::required);
    v("n_rays", n_rays, "rays", config::required);
    v("grid", grid, "voxels of the image for one of the network's", config::required);
    v("b", b, "a number, or pairs of numbers: voxels of the network along the sides");
    v("anisotropy", anisotropy, "3D: voxel sizes Z, Y, X");
    v("overlap_label", overlap_label, "3D: the label of what several objects cover");
  }
};

PackageObjects stars_of(const Node& operation, int64_t spatial_dims) {
  const Node& kwargs = operation.at("kwargs");
  const auto given = config::parse<StardistArguments>(kwargs);
  if (std::ssize(given.grid) != spatial_dims || *std::ranges::min_element(given.grid) < 1)
    refuse_package(kwargs.at("grid"), fmt::format("expected {} numbers from 1", spatial_dims));
  if (given.overlap_label)
    refuse_package(kwargs.at("overlap_label"), "a label of overlaps, expected null");
  Node options = Node::make_map();
  options.set("prob_thresh", Node::make_real(given.prob_threshold));
  options.set("nms_thresh", Node::make_real(given.nms_threshold));
  options.set("from_logits", Node::make_boolean(false));
  options.set("grid", Node::make_list(given.grid));
  if (!given.anisotropy.empty()) options.set("anisotropy", Node::make_list(given.anisotropy));
  Node border = given.b;
  if (border.kind == config::Kind::list) {
    std::vector<int64_t> sides;
    for (const Node& pair : border.list)
      for (const int64_t side : pair.as<std::vector<int64_t>>()) sides.push_back(side);
    border = Node::make_list(sides);
  }
  if (!border.is_null()) options.set("border", std::move(border));
  return {instance_decoder("stars", std::move(options)), given.grid};
}

struct CellposeArguments {
  double cellprob_threshold = 0, flow_threshold = 0.4;
  bool do_3D = false;
  int64_t min_size = 15;
  std::string output_dtype;
  void visit(auto& v) {
    v("cellprob_threshold", cellprob_threshold, "Cellpose's", config::required);
    v("flow_threshold", flow_threshold, "Cellpose's", config::required);
    v("do_3D", do_3D, "whether flows are along three axes", config::required);
    v("min_size", min_size, "voxels; smaller objects are dropped");
    v("output_dtype", output_dtype, "of the labels", {"uint16", "uint32"});
  }
};

PackageObjects flows_of(const Node& operation, int64_t spatial_dims) {
  const Node& kwargs = operation.at("kwargs");
  const auto given = config::parse<CellposeArguments>(kwargs);
  if (given.do_3D != (spatial_dims == 3)) {
    refuse_package(kwargs.at("do_3D"),
                   fmt::format("{} for images in {} dimensions, expected {}",
                               given.do_3D,
                               spatial_dims,
                               !given.do_3D));
  }
  Node options = Node::make_map();
  options.set("cellprob_threshold", Node::make_real(given.cellprob_threshold));
  options.set("flow_threshold", Node::make_real(given.flow_threshold));
  options.set("min_size", Node::make_integer(given.min_size));
  return {instance_decoder("flows", std::move(options)),
          std::vector<int64_t>(static_cast<std::size_t>(spatial_dims), 1)};
}

}  // namespace

PackageObjects objects_of(const PackageTensor& output, int64_t spatial_dims) {
  PackageObjects objects;
  for (const Node& operation : output.operations.list) {
    const auto id = operation.get<std::string>("id");
    const bool are_stars = id == "stardist_postprocessing";
    if (!are_stars && id != "cellpose_flow_dynamics") continue;
    const auto is_other = [&](const Node& other) {
      return &other != &operation && other.get<std::string>("id") != "ensure_dtype";
    };
    const auto& all = output.operations.list;
    if (const auto other = std::ranges::find_if(all, is_other); other != all.end()) {
      refuse_package(
          *other,
          fmt::format("'{}' beside {}, expected that alone", other->get<std::string>("id"), id));
    }
    objects = are_stars ? stars_of(operation, spatial_dims) : flows_of(operation, spatial_dims);
  }
  return objects;
}

}  // namespace cytra::inference
