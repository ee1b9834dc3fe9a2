#include "students/twenty48/data/train_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "learn/options/given_model.h"

namespace kibitz::twenty48 {

TrainOptions::TrainOptions() {
  training.learning_rate = 1e-3;
  training.weight_decay = 0.01;
  training.beta2 = 0.98;
  training.max_grad_norm = 1;
  training.warmup_steps = 100;
  training.schedule = learn::Schedule::kWarmupStableDecay;
  training.decay_fraction = 0.3;
  training.min_lr_ratio = 0.05;
}

Fields FieldsOf(TrainOptions& options) {
  Fields fields;
  fields.Add("run_name", options.run_name, "the run's folder within training.checkpoint_dir");
  fields.Add("init", options.init, "weights to start from: .pt, .safetensors, or their folder",
             {.metavar = "PATH"});
  fields.AddChoice("attention", options.attention,
                   "off: train the network without attention, a fortieth of the work, as a warm "
                   "start; then init a run with attention from it",
                   std::vector<std::pair<std::string, bool>>{{"on", true}, {"off", false}});
  fields.AddAll(FieldsOf(options.target), "target");
  fields.AddAll(FieldsOf(options.binning), "binning");
  fields.AddAll(FieldsOf(options.dataset), "dataset");
  fields.AddAll(FieldsOf(options.model), "model");
  fields.AddAll(learn::FieldsOf(options.training), "training");
  fields.Add("fresh", options.fresh, "remove the run that is in the folder and start over");
  fields.Add("strict", options.strict,
             "do not resume when data or options that shape the weights changed");
  return fields;
}

void NoteGiven(TrainOptions& options, const Fields& fields) {
  options.given_model = learn::GivenKeys(fields, "model");
  // The target sets the head, whatever was given.
  std::erase_if(options.given_model, [](const std::string& key) {
    return key == "head_type" || key == "output_n_bins";
  });
}

TrainOptions Completed(TrainOptions options) {
  if (options.dataset.dataset_dir.empty()) {
    throw Error::Usage("dataset.dataset_dir is not set: where is the pack?");
  }
  if (!options.init.empty()) {
    const io::ModelFile file = io::ReadModel(options.init);
    if (file.Section("model") != nullptr) {
      NetConfig config = ConfigOf(file, options.model.num_attention_heads);
      const bool given = std::ranges::count(options.given_model, "num_hidden_layers") > 0;
      const int more = options.model.num_hidden_layers - config.num_hidden_layers;
      if (config.tuple_width > 0 && given && more > 0) {
        LogInfo("{} has {} layers; {} are added that change nothing at first", options.init,
                config.num_hidden_layers, more);
        config.num_hidden_layers = options.model.num_hidden_layers;
      }
      options.model =
          learn::ModelOfWeights(options.model, config, options.given_model, options.init);
    }
  }
  if (options.target.mode == TargetMode::kBinnedEv) {
    options.model.head_type = HeadType::kBinnedEv;
    options.model.output_n_bins = Binner(options.binning).bins();
  } else {
    options.model.head_type = HeadType::kActionPolicy;
    options.model.output_n_bins.reset();
  }
  CheckConfig(options.model);
  const bool tuples = options.model.tuple_width > 0;
  if ((tuples || !options.attention) && options.training.gradient_checkpointing) {
    throw Error::Usage(
        "training.gradient_checkpointing is for the encoder over tiles, with attention; others "
        "keep little, lower dataset.batch_size instead");
  }
  if (!options.attention && !tuples) CheckAttentionFree(options.model);
  return options;
}

}  // namespace kibitz::twenty48
