#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "io/bytes/byte_sink.h"
#include "io/bytes/byte_source.h"
#include "io/tables/convert_tables.h"
#include "io/weights/convert_weights.h"
#include "io/weights/model_file.h"
#include "players/networks.h"
#include "students/decoder/play/onnx.h"
#include "students/policy/play/onnx.h"
#include "students/twenty48/play/onnx.h"

namespace kibitz::cli {
namespace {

using Json = nlohmann::ordered_json;

struct FileConvertOptions {
  std::string from;
  std::string to;
  std::string out;
  bool force = false;
  bool skip_bad = false;
};

Fields FieldsOf(FileConvertOptions& options) {
  Fields fields;
  fields.Add("from", options.from, "the file to read, or a model folder",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.Add("to", options.to, "an .onnx file to write, instead of --out",
             {.positional = true, .metavar = "TO"});
  fields.Add("out", options.out, "the file to write", {.metavar = "FILE"});
  fields.Add("force", options.force, "write over an existing file");
  fields.Add("skip_bad", options.skip_bad,
             "leave out lines that are no JSON objects and count them, instead of failing");
  return fields;
}

// What a file is by its ending, with compression taken off.
enum class Kind { kPt, kSafetensors, kParquet, kJsonl, kOther };

std::string WithoutCompression(const std::string& path) {
  const std::filesystem::path name(path);
  const auto ending = name.extension();
  return ending == ".gz" || ending == ".zst" ? (name.parent_path() / name.stem()).string() : path;
}

Kind KindOf(const std::string& path) {
  const std::string ending = std::filesystem::path(WithoutCompression(path)).extension();
  if (ending == ".pt" || ending == ".pth") return Kind::kPt;
  if (ending == ".safetensors") return Kind::kSafetensors;
  if (ending == ".parquet") return Kind::kParquet;
  if (ending == ".jsonl" || ending == ".ndjson") return Kind::kJsonl;
  return Kind::kOther;
}

// Unpacks and packs again; the content stays.
void Repack(const FileConvertOptions& options) {
  const auto source = io::OpenBytes(options.from);
  io::ByteSink sink(options.out);
  Progress progress("bytes", std::filesystem::file_size(options.from));
  std::vector<char> buffer(1 << 18);
  for (size_t count = source->Read(buffer.data(), buffer.size()); count > 0;
       count = source->Read(buffer.data(), buffer.size())) {
    ThrowIfInterrupted();
    sink.Write({buffer.data(), count});
    progress.Add(source->Position() - progress.done());
  }
  sink.Commit();
}

Json ConvertTable(const FileConvertOptions& options, Kind from) {
  Progress progress("rows", 0);
  const auto on_rows = [&](uint64_t rows) {
    ThrowIfInterrupted();
    progress.Add(rows - progress.done());
  };
  const io::TableConversion done =
      from == Kind::kParquet
          ? io::ConvertParquetToJsonl(options.from, options.out, {.progress = on_rows})
          : io::ConvertJsonlToParquet(options.from, options.out,
                                      {.skip_bad = options.skip_bad, .progress = on_rows});
  if (done.skipped > 0)
    LogWarn("{} lines skipped; the first: {}", done.skipped, done.first_problem);
  return {{"rows", done.rows}, {"skipped", done.skipped}};
}

// A network of any student, by what the file holds.
void ConvertToOnnx(const FileConvertOptions& options) {
  const io::ModelFile file = io::ReadModel(options.from);
  if (file.weights.Find("tok_emb.weight") != nullptr ||
      file.weights.Find("mix.weight") != nullptr) {
    return twenty48::OnnxOf(file).Write(options.out);
  }
  switch (players::NetworkKindOf(file)) {
    case players::NetworkKind::kDecoder:
      return decoder::OnnxOf(file).Write(options.out);
    case players::NetworkKind::kPolicy:
      return policy::OnnxOf(file).Write(options.out);
    case players::NetworkKind::kLc0:
      throw Error("{}: an lc0 network; lc0's own 'leela2onnx' writes it as ONNX", file.place);
  }
}

int Run(const FileConvertOptions& given, const Context& context) {
  FileConvertOptions options = given;
  if (!options.to.empty() && !options.to.ends_with(".onnx")) {
    throw Error::Usage("{}: the output follows a flag: --out FILE", options.to);
  }
  if (options.to.empty() == options.out.empty()) {
    throw Error::Usage("give the file to write once, as --out FILE or as the second word");
  }
  if (options.out.empty()) options.out = options.to;
  std::error_code error;
  if (std::filesystem::equivalent(options.from, options.out, error)) {
    throw Error::Usage("FILE and --out name the same file");
  }
  if (!options.force && std::filesystem::exists(options.out)) {
    throw Error("{} exists; --force writes over it", options.out);
  }
  const Kind from = KindOf(options.from);
  const Kind to = KindOf(options.out);
  Json facts = Json::object();
  if (options.out.ends_with(".onnx")) {
    ConvertToOnnx(options);
  } else if (from == Kind::kPt && to == Kind::kSafetensors) {
    io::ConvertPtToSafetensors(options.from, options.out);
  } else if (from == Kind::kSafetensors && to == Kind::kPt) {
    io::ConvertSafetensorsToPt(options.from, options.out);
  } else if ((from == Kind::kParquet && to == Kind::kJsonl) ||
             (from == Kind::kJsonl && to == Kind::kParquet)) {
    facts = ConvertTable(options, from);
  } else if (std::filesystem::path(WithoutCompression(options.from)).extension() ==
                 std::filesystem::path(WithoutCompression(options.out)).extension() &&
             (from == Kind::kJsonl || from == Kind::kOther)) {
    Repack(options);
  } else {
    throw Error::Usage(
        "cannot convert {} to {}; known: .pt <-> .safetensors, a model to .onnx, .parquet <-> "
        ".jsonl[.gz|.zst], and packing or unpacking the same kind of file",
        options.from, options.out);
  }
  facts["bytes"] = std::filesystem::file_size(options.out);
  if (context.json) {
    Json object = {{"from", options.from}, {"to", options.out}};
    object.update(facts);
    PrintJson(object);
  } else {
    std::string text;
    for (const auto& [key, value] : facts.items())
      text += fmt::format(", {} {}", value.dump(), key);
    fmt::print("{} written{}\n", options.out, text);
  }
  return 0;
}

}  // namespace

Command FileConvert() {
  return MakeCommand<FileConvertOptions>(
      {.name = "file convert",
       .group = "Files",
       .summary =
           "convert weights between .pt and .safetensors or to ONNX, rows between .parquet and "
           ".jsonl",
       .details = "The file endings choose the conversion. Between .pt and .safetensors nothing is "
                  "lost: values\n"
                  "that are not tensors are kept as metadata. Objects and lists in JSON lines "
                  "become JSON text in\n"
                  "Parquet. The endings .gz and .zst compress and decompress. A model becomes ONNX "
                  "with named\n"
                  "inputs and outputs: a policy, a 2048 network, or a decoder's move without "
                  "thinking.",
       .example = "kibitz file convert models/policy-small/model.safetensors --out policy.pt"},
      Run);
}

}  // namespace kibitz::cli
