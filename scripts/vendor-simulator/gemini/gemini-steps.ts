import type { ChatScript } from '../chat-script.ts';
import type { Faults } from '../faults.ts';
import { signCall } from './gemini-tool-turns.ts';
import { signText } from '../signatures.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import { makeSampleImage } from '../sample-image.ts';

/** The content of a response, before it is rendered as one message or many. */
export interface GeminiPlan {
  readonly model: string;
  readonly script: ChatScript;
  readonly candidates: number;
  readonly showsThoughts: boolean;
  /** Whether the response is signed: on its first tool call or, if it has none, at the end of its text. */
  readonly isSigned: boolean;
  /** Whether calls have ids, which vendors of this dialect may omit. */
  readonly hasCallIds: boolean;
  /** Aspect ratio (width to height) of the generated image. Null if there is none. */
  readonly imageRatio: number | null;
  /** Whether the image is an edit of those in the prompt. If so, it has a different colour. */
  readonly isEdit: boolean;
  /** The faulty content that is sent instead of the image. */
  readonly imageFault: Faults['image'];
  readonly isBlocked: boolean;
}

const IMAGE_SIDE = 64;
/** Google's token count for an image. */
const IMAGE_TOKENS = 1290;

/** A step of a response: the parts of one chunk, and the tokens written so far. */
export interface Step {
  readonly parts: readonly JsonRecord[];
  readonly thoughtTokens: number;
  /** Tokens other than thoughts. */
  readonly outputTokens: number;
}

export function planSteps(plan: GeminiPlan): readonly Step[] {
  const { script, showsThoughts, isSigned } = plan;
  const { reasoningTokens, completionTokens } = script.usage;
  const steps: Step[] = [];
  const shownThoughts = showsThoughts ? script.reasoning : [];
  for (const [index, text] of shownThoughts.entries()) {
    steps.push({ parts: [{ text, thought: true }], thoughtTokens: index + 1, outputTokens: 0 });
  }
  const add = (part: JsonRecord, outputTokens: number): void => {
    steps.push({ parts: [part], thoughtTokens: reasoningTokens, outputTokens });
  };
  for (const [index, text] of script.pieces.entries()) {
    add({ text }, index + 1);
  }
  for (const [index, call] of script.toolCalls.entries()) {
    const id = plan.hasCallIds ? { id: `call_simulated_${call.number}` } : {};
    const signature = isSigned && index === 0 ? { thoughtSignature: signCall(call.name, call.input) } : {};
    add(
      { functionCall: { ...id, name: call.name, args: call.input }, ...signature },
      completionTokens - reasoningTokens,
    );
  }
  if (plan.imageRatio !== null) {
    const data = drawImage(plan.imageRatio, plan);
    add({ inlineData: { mimeType: 'image/png', data } }, countTokens(plan));
  }
  if (isSigned && script.toolCalls.length === 0 && script.pieces.length > 0) {
    add({ text: '', thoughtSignature: signText(script.pieces.join('')) }, countTokens(plan));
  } else if (script.toolCalls.length > 0) {
    add({ text: '' }, countTokens(plan));
  }
  return steps.length > 0 ? steps : [{ parts: [], thoughtTokens: reasoningTokens, outputTokens: 0 }];
}

function drawImage(ratio: number, { isEdit, imageFault }: GeminiPlan): string {
  const [width, height] = ratio >= 1 ? [1, 1 / ratio] : [ratio, 1];
  return makeSampleImage('png', isEdit ? [0, 200, 120] : [0, 120, 200], imageFault, {
    width: Math.max(1, Math.round(width * IMAGE_SIDE)),
    height: Math.max(1, Math.round(height * IMAGE_SIDE)),
  });
}

/** Counts one candidate, without its thoughts. */
export function countTokens({ script, imageRatio }: GeminiPlan): number {
  const { completionTokens, reasoningTokens } = script.usage;
  const words = script.toolCalls.length > 0 ? completionTokens - reasoningTokens : script.pieces.length;
  return words + (imageRatio === null ? 0 : IMAGE_TOKENS);
}
