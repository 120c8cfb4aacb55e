import { setImmediate as nextTurn } from 'node:timers/promises';
import { countTokensAsync } from '../../../shared/pricing/count-tokens.ts';
import {
  UpstreamError,
  type CallContext,
  type ChatBody,
  type ChatEvent,
  type EmbeddingAnswer,
  type EmbeddingCall,
  type ImageAnswer,
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
  /** Told of each encoder thread as it is started. */
  readonly onEncoderThread?: TextEncoderOptions['onThread'];
  /** Told why an encoder thread died. */
  readonly onEncoderFault?: TextEncoderOptions['onFault'];
  /** Between two words of a streamed answer of demo-echo; 15 unless set. */
  readonly wordPauseMs?: number | undefined;
}

/**
 * Billing counts the tokens of the whole input, as for any embedding model, not the 128 that the encoder reads; but
 * counting more than this would be work for nothing.
 */
const MAX_BILLED_TOKENS = 8192;

/** Models that need no vendor: an encoder of sentences, a chat that echoes, a maker of posters, an editor of images. */
export function createBuiltinUpstream(options: BuiltinOptions = {}): Upstream {
  const encoder = createTextEncoder({
    threads: options.encoderThreads,
    onThread: options.onEncoderThread,
    onFault: options.onEncoderFault,
  });

  type MakeImages = (call: ImageCall, context: CallContext) => Promise<ImageAnswer>;
  const imageModels: ReadonlyMap<string, MakeImages> = new Map([
    ['demo-svg-image', drawDemoImages],
    ['demo-image-edit', createImageEditor()],
  ]);

  return {
    async *chat(
      target: UpstreamTarget,
      body: ChatBody,
      stream: boolean,
      context: CallContext,
    ): AsyncIterable<ChatEvent> {
      requireModel(target, 'demo-echo');
      context.onSent?.();
      yield* runDemoEcho(body, stream, context, { wordPauseMs: options.wordPauseMs ?? 15 });
    },

    async embed(
      target: UpstreamTarget,
      call: EmbeddingCall,
      { signal }: CallContext,
    ): Promise<EmbeddingAnswer> {
      requireModel(target, 'use-lite-en-512');
      if (call.dimensions !== null && call.dimensions !== ENCODER_DIMENSIONS) {
        throw new UpstreamError('rejected', `dimensions must be ${ENCODER_DIMENSIONS}`);
      }
      // Threads encode meanwhile.
      const [vectors, promptTokens] = await Promise.all([
        encoder.encode(call.inputs, signal),
        countBilledTokens(call.inputs, signal),
      ]);
      return { vectors, dimensions: ENCODER_DIMENSIONS, broken: [], promptTokens, giveBack: null };
    },

    async generateImages(
      target: UpstreamTarget,
      call: ImageCall,
      context: CallContext,
    ): Promise<ImageAnswer> {
      const make = imageModels.get(target.model);
      if (make === undefined) throw refuseModel(target);
      context.onSent?.();
      return await make(call, context);
    },

    async close() {
      await encoder.close();
    },
  };
}

function requireModel({ model }: UpstreamTarget, served: string): void {
  if (model !== served) throw refuseModel({ model });
}

function refuseModel({ model }: Pick<UpstreamTarget, 'model'>): UpstreamError {
  return new UpstreamError(
    'rejected',
    `the builtin upstream has no model ${JSON.stringify(model)} for this kind of call`,
  );
}

async function countBilledTokens(inputs: readonly string[], signal: AbortSignal): Promise<number> {
  let count = 0;
  for (const [index, input] of inputs.entries()) {
    // Short inputs are each counted in one turn; many of them must not be.
    if (index % 64 === 63) await nextTurn();
    const tokens = await countTokensAsync(input, { limit: MAX_BILLED_TOKENS, signal });
    count += tokens ?? MAX_BILLED_TOKENS;
  }
  return count;
}
