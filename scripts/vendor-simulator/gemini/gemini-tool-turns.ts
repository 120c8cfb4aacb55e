import type { FunctionPart, GeminiContent } from './gemini-contents.ts';
import { isSignatureOf, signText } from '../signatures.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';

/** Placeholder for a lost signature. */
const SKIP_SIGNATURE = 'skip_thought_signature_validator';

/** A call's signature covers the call, so that changes to it are detected. */
export function signCall(name: string, args: unknown): string {
  return signText(describeCall(name, args));
}

function describeCall(name: string, args: unknown): string {
  return `${name} ${JSON.stringify(args)}`;
}

/** Checks that the content after each set of calls contains all of their responses, and no others. */
export function checkToolTurns(contents: readonly GeminiContent[]): string | null {
  for (const [index, { calls, responses }] of contents.entries()) {
    const previous = contents[index - 1];
    if (calls.length > 0 && (previous === undefined || previous.role !== 'user')) {
      return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.';
    }
    if (responses.length > 0 && (previous?.calls.length ?? 0) === 0) {
      return 'Please ensure that function response turn comes immediately after a function call turn.';
    }
    const next = contents[index + 1];
    if (calls.length > 0 && next !== undefined) {
      const problem = checkResponses(calls, next.responses);
      if (problem !== null) {
        return problem;
      }
    }
  }
  return null;
}

function checkResponses(calls: readonly FunctionPart[], responses: readonly FunctionPart[]): string | null {
  if (calls.length !== responses.length) {
    return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';
  }
  // Match responses by id if all calls have one, otherwise by name.
  const hasIds = calls.every(({ id }) => id !== null);
  const describe = ({ id, name }: FunctionPart): string => (hasIds ? `${id} ${name}` : name);
  const expected = calls.map(describe).sort();
  const actual = responses.map(describe).sort();
  return expected.every((call, index) => call === actual[index])
    ? null
    : 'Please ensure that the names and ids of function response parts are those of the function call parts of the function call turn.';
}

/** After the last user message, the first call of every step must include the signature with which it was issued. */
export function checkSignatures(contents: readonly GeminiContent[]): string | null {
  const start = contents.findLastIndex(({ role, responses }) => role === 'user' && responses.length === 0);
  for (const [index, { calls }] of contents.entries()) {
    const [call] = calls;
    if (index <= start || call === undefined) {
      continue;
    }
    const signature = call.part['thoughtSignature'];
    if (signature === undefined) {
      return `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${call.name}\` , position ${index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`;
    }
    if (!isIssued(signature, call.name, call.value)) {
      return 'Thought signature is not valid.';
    }
  }
  return null;
}

function isIssued(signature: unknown, name: string, args: JsonRecord): boolean {
  return (
    typeof signature === 'string' &&
    (signature === SKIP_SIGNATURE || isSignatureOf(signature, describeCall(name, args)))
  );
}
