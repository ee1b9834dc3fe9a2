#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "io/weights/model_file.h"
#include "io/weights/torch_file.h"
#include "io/weights/value_tree.h"
#include "students/decoder/data/widen.h"

namespace kibitz::cli {
namespace {

using io::Value;

struct WidenArguments {
  std::string in;
  std::string out;
  decoder::WidenOptions widen;
};

Fields FieldsOf(WidenArguments& options) {
  Fields fields;
  fields.Add("in", options.in, "checkpoint to read, .pt or .safetensors",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.Add("out", options.out, "where the wider checkpoint goes, .pt",
             {.required = true, .metavar = "FILE"});
  fields.Add("seed", options.widen.seed, "seed of the noise that lets the copies part");
  fields.Add("noise", options.widen.noise, "its size, as a share of each matrix's own",
             {.min = 0, .max = 10});
  return fields;
}

int Run(const WidenArguments& options, const Context& context) {
  if (!options.out.ends_with(".pt")) {
    throw Error::Usage("--out is {}, expected a file that ends with .pt", options.out);
  }
  const io::ModelFile file = io::ReadModel(options.in);
  const decoder::WeightsFile wide = decoder::Widen(decoder::WeightsOf(file), options.widen);
  nlohmann::ordered_json config = file.config.is_object() ? file.config : nlohmann::ordered_json();
  config["model"]["embed_dim"] = wide.config.embed_dim;
  config["model"]["num_heads"] = wide.config.num_heads;
  config["model"]["d_ff"] = wide.config.d_ff;
  io::WritePt(options.out,
              Value::Dict({{Value::String("model_state_dict"), io::ToDict(wide.weights.tensors())},
                           {Value::String("config"), io::FromTree(config)}}));
  if (context.json) {
    PrintJson({{"in", options.in},
               {"out", options.out},
               {"embed_dim", wide.config.embed_dim},
               {"num_heads", wide.config.num_heads},
               {"d_ff", wide.config.d_ff}});
    return 0;
  }
  fmt::print("{} written: width {}, {} heads, MLP {}\n", options.out, wide.config.embed_dim,
             wide.config.num_heads, wide.config.d_ff);
  return 0;
}

}  // namespace

Command DecoderWiden() {
  return MakeCommand<WidenArguments>(
      {.name = "decoder widen",
       .group = "Decoder",
       .summary = "make a checkpoint twice as wide; it plays the same until it is trained further",
       .details =
           "A small network learns the rules in a fraction of the time. Widen it and go on:\n"
           "kibitz decoder finetune --pretrain-checkpoint wide.pt ...",
       .example = "kibitz decoder widen tests/golden/decoder/tiny.pt --out wide.pt"},
      Run);
}

}  // namespace kibitz::cli
