import { setImmediate as nextTurn } from 'node:timers/promises';
import { countTokensAsync } from '../../../shared/catalog/count-tokens.ts';
import {
  UpstreamError,
  type CallContext,
  type ChatBody,
  type ChatEvent,
  type EmbeddingResponse,
  type EmbeddingCall,
  type ImageResponse,
  type ImageCall,
  type Upstream,
  type UpstreamTarget,
} from '../upstream.ts';
import { runDemoEcho } from './demo-echo.ts';
import { createImageEditor } from './demo-image-edit.ts';
import { drawDemoImages } from './demo-svg-image.ts';
import { ENCODER_DIMENSIONS } from './sentence-model.ts';
import { createTextEncoder, type TextEncoderOptions } from './text-encoder.ts';

export interface BuiltinOptions {
  readonly encoderThreads?: number | undefined;
  /** Called with each encoder thread as it starts. */
  readonly onEncoderThread?: TextEncoderOptions['onThread'];
  /** Called with the reason when an encoder thread dies. */
  readonly onEncoderFault?: TextEncoderOptions['onFault'];
  /** Pause between two words of a streamed demo-echo response; 15 by default. */
  readonly wordPauseMs?: number | undefined;
}

/**
 * As with any embedding model, the tokens of the whole input are billed, not just the 128 that the encoder reads.
 * Counting more than this would be wasted work.
 */
const MAX_BILLED_TOKENS = 8192;

/**
 * Creates the upstream of the models that need no vendor: a sentence encoder, a chat that echoes, a poster generator
 * and an image editor.
 */
export function createBuiltinUpstream(options: BuiltinOptions = {}): Upstream {
  const encoder = createTextEncoder({
    threads: options.encoderThreads,
    onThread: options.onEncoderThread,
    onFault: options.onEncoderFault,
  });

  type MakeImages = (call: ImageCall, context: CallContext) => Promise<ImageResponse>;
  const imageModels: ReadonlyMap<string, MakeImages> = new Map([
    ['demo-svg-image', drawDemoImages],
    ['demo-image-edit', createImageEditor()],
  ]);

  return {
    chat(
      target: UpstreamTarget,
      body: ChatBody,
      stream: boolean,
      context: CallContext,
    ): AsyncIterable<readonly ChatEvent[]> {
      requireModel(target, 'demo-echo');
      context.onSent?.();
      return runDemoEcho(body, stream, context, { wordPauseMs: options.wordPauseMs ?? 15 });
    },

    async embed(
      target: UpstreamTarget,
      call: EmbeddingCall,
      { signal }: CallContext,
    ): Promise<EmbeddingResponse> {
      requireModel(target, 'use-lite-en-512');
      if (call.dimensions !== null && call.dimensions !== ENCODER_DIMENSIONS) {
        throw new UpstreamError('rejected', `dimensions must be ${ENCODER_DIMENSIONS}`);
      }
      // Tokenize the inputs while the threads encode.
      const [vectors, promptTokens] = await Promise.all([
        encoder.encode(call.inputs, signal),
        countBilledTokens(call.inputs, signal),
      ]);
      return { vectors, dimensions: ENCODER_DIMENSIONS, broken: [], promptTokens, release: null };
    },

    async generateImages(
      target: UpstreamTarget,
      call: ImageCall,
      context: CallContext,
    ): Promise<ImageResponse> {
      const make = imageModels.get(target.model);
      if (make === undefined) throw rejectUnknownModel(target);
      context.onSent?.();
      return await make(call, context);
    },

    async close() {
      await encoder.close();
    },
  };
}

function requireModel({ model }: UpstreamTarget, served: string): void {
  if (model !== served) throw rejectUnknownModel({ model });
}

function rejectUnknownModel({ model }: Pick<UpstreamTarget, 'model'>): UpstreamError {
  return new UpstreamError(
    'rejected',
    `the builtin upstream has no model ${JSON.stringify(model)} for this kind of call`,
  );
}

async function countBilledTokens(inputs: readonly string[], signal: AbortSignal): Promise<number> {
  let count = 0;
  for (const [index, input] of inputs.entries()) {
    // Short inputs are tokenized without yielding, so yield after a number of them.
    if (index % 64 === 63) await nextTurn();
    const tokens = await countTokensAsync(input, { limit: MAX_BILLED_TOKENS, signal });
    count += tokens ?? MAX_BILLED_TOKENS;
  }
  return count;
}
