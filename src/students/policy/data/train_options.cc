#include "students/policy/data/train_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "learn/options/given_model.h"

namespace kibitz::policy {

TrainOptions::TrainOptions() {
  training.learning_rate = 1e-3;
  training.weight_decay = 0.01;
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
  fields.AddAll(FieldsOf(options.data), "data");
  fields.AddAll(FieldsOf(options.label), "label");
  fields.AddAll(FieldsOf(options.model), "model");
  fields.AddAll(learn::FieldsOf(options.training), "training");
  fields.Add("fresh", options.fresh, "remove the run that is in the folder and start over");
  fields.Add("strict", options.strict,
             "do not resume when data or options that shape the weights changed");
  return fields;
}

void NoteGiven(TrainOptions& options, const Fields& fields) {
  options.given_model = learn::GivenKeys(fields, "model");
}

TrainOptions Completed(TrainOptions options) {
  if (options.data.data_dir.empty()) {
    throw Error::Usage("data.data_dir is not set: where is the data set?");
  }
  if (!options.init.empty()) {
    NetConfig config = ConfigOf(io::ReadModel(options.init));
    const auto given = [&](const char* key) {
      return std::ranges::count(options.given_model, key) > 0;
    };
    if (given("attack_planes") && options.model.attack_planes && !config.attack_planes) {
      LogInfo("{} knows no attack planes; they are added with weights of zero", options.init);
      config.attack_planes = true;
    }
    if (given("num_layers") && config.IsCnn() && options.model.num_layers > config.num_layers) {
      LogInfo("{} has {} blocks; {} are added that change nothing at first", options.init,
              config.num_layers, options.model.num_layers - config.num_layers);
      config.num_layers = options.model.num_layers;
    }
    options.model = learn::ModelOfWeights(options.model, config, options.given_model, options.init);
  }
  CheckConfig(options.model);
  if (options.training.gradient_checkpointing && !options.model.IsCnn()) {
    throw Error::Usage(
        "training.gradient_checkpointing is for PolicyCNN; an MLP keeps little, lower "
        "data.batch_size instead");
  }
  return options;
}

}  // namespace kibitz::policy
