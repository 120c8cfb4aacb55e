import { type AnthropicTurn, isToolResult } from './anthropic-turns.ts';
import { readText } from '../json-record.ts';

/**
 * Checks that the next turn contains the result of every tool use, before any other content, and no other results.
 */
export function checkToolPairs(turns: readonly AnthropicTurn[]): string | null {
  const known = new Set<string>();
  for (const [index, turn] of turns.entries()) {
    const uses = turn.blocks
      .filter(({ type }) => type === 'tool_use')
      .map(({ block }) => readText(block['id']));
    const duplicate = uses.find((id, at) => known.has(id) || uses.indexOf(id) !== at);
    if (duplicate !== undefined) {
      return `${turn.path}: \`tool_use\` ids must be unique`;
    }
    for (const id of uses) {
      known.add(id);
    }
    const problem =
      checkEveryUseAnswered(turn, uses, turns[index + 1]) ?? checkResults(turn, turns[index - 1]);
    if (problem !== null) {
      return problem;
    }
  }
  return null;
}

function checkEveryUseAnswered(
  turn: AnthropicTurn,
  uses: readonly string[],
  next: AnthropicTurn | undefined,
): string | null {
  const blocks = next?.blocks ?? [];
  const end = blocks.findIndex((block) => !isToolResult(block));
  const answered = blocks
    .slice(0, end === -1 ? blocks.length : end)
    .map(({ block }) => readText(block['tool_use_id']));
  const unanswered = uses.filter((id) => !answered.includes(id));
  if (unanswered.length > 0) {
    return `${turn.path}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${unanswered.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
  }
  const duplicate = answered.find((id, at) => answered.indexOf(id) !== at);
  return duplicate === undefined
    ? null
    : `${next?.path}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${duplicate}`;
}

function checkResults(turn: AnthropicTurn, previous: AnthropicTurn | undefined): string | null {
  const uses = (previous?.blocks ?? [])
    .filter(({ type }) => type === 'tool_use')
    .map(({ block }) => block['id']);
  const unexpected = turn.blocks.find(
    (block) => isToolResult(block) && !uses.includes(block.block['tool_use_id']),
  );
  return unexpected === undefined
    ? null
    : `${unexpected.path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${readText(unexpected.block['tool_use_id'])}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
}

/**
 * With thinking enabled, every model turn with a tool use after the last user message must start with its thinking, and
 * so must a turn that the model has to continue. `checkBlock` verifies the signature of the thinking.
 */
export function checkToolLoop(turns: readonly AnthropicTurn[]): string | null {
  for (const turn of turns.slice(findLoopStart(turns))) {
    const [firstBlock] = turn.blocks;
    const needsThinking = turn === turns.at(-1) || turn.blocks.some(({ type }) => type === 'tool_use');
    if (
      turn.role === 'assistant' &&
      needsThinking &&
      firstBlock !== undefined &&
      firstBlock.type !== 'thinking'
    ) {
      return `${firstBlock.path}.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${firstBlock.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). To avoid this requirement, disable \`thinking\`.`;
    }
  }
  return null;
}

/** Finds the last user turn without tool results. */
function findLoopStart(turns: readonly AnthropicTurn[]): number {
  return turns.findLastIndex(({ role, blocks }) => role === 'user' && !blocks.some(isToolResult));
}
