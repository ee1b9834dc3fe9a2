// Runs ONNX files by onnxruntime and compares with what our own runtime answered:
// node compare.mjs FOLDER. The folder has cases.json: [{name, model, inputs: {name: {file, type, shape}},
// outputs: {name: {file, shape}}}]; files are raw numbers. Prints a line of JSON for each case.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {join} from "node:path";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
let ort;
try {
  ort = require("onnxruntime-node");
} catch (error) {
  console.log(JSON.stringify({missing: String(error.message).split("\n")[0]}));
  process.exit(0);
}

const folder = process.argv[2];
const read = (file, Type) => {
  const bytes = readFileSync(join(folder, file));
  return new Type(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
};

for (const test of JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"))) {
  const session = await ort.InferenceSession.create(join(folder, test.model));
  const feeds = {};
  for (const [name, input] of Object.entries(test.inputs)) {
    const data = read(input.file, input.type === "int64" ? BigInt64Array : Float32Array);
    feeds[name] = new ort.Tensor(input.type, data, input.shape);
  }
  const results = await session.run(feeds);
  for (const [name, output] of Object.entries(test.outputs)) {
    const expected = read(output.file, Float32Array);
    const found = results[name].data;
    let worst = 0, largest = 0;
    for (let i = 0; i < expected.length; ++i) {
      const difference = Math.abs(expected[i] - found[i]);
      worst = difference > worst || Number.isNaN(difference) ? difference : worst;
      largest = Math.max(largest, Math.abs(expected[i]));
    }
    const dims = JSON.stringify(results[name].dims) === JSON.stringify(output.shape);
    console.log(JSON.stringify({
      name: test.name, output: name, shape_equal: dims, count: expected.length === found.length ? found.length : -1,
      worst, largest, inputs: session.inputNames, outputs: session.outputNames}));
  }
}
