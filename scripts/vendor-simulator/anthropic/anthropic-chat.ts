import { type AnthropicPlan, renderWhole } from './anthropic-response.ts';
import { buildBlocks } from './anthropic-blocks.ts';
import { readMessages } from './anthropic-messages.ts';
import { checkRequest, isCustomTool, isServerSearch, isThinkingOn } from './anthropic-rules.ts';
import { renderStream } from './anthropic-stream.ts';
import { type AnthropicTurn, isToolResult, readContent, readTurns } from './anthropic-turns.ts';
import { type ScriptInput, type ChatScript, writeChatScript } from '../chat-script.ts';
import { findLastUserText } from '../conversation.ts';
import { countReceived } from '../count-received.ts';
import { countWords } from '../count-words.ts';
import type { SimulatedResponse, SimulatedCall } from '../dialect.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';

const STOPS: Readonly<Record<ChatScript['finish'], string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
};

/** Returns the response, or the reason why the vendor rejects the request. */
export function handleAnthropicChat(call: SimulatedCall): SimulatedResponse | string {
  const { body, model, faults } = call;
  const problem = checkRequest(model, body);
  if (problem !== null) {
    return problem;
  }
  const turns = readMessages(body, readRecord(body['thinking'])['type'] === 'enabled');
  if (typeof turns === 'string') {
    return turns;
  }
  const plan = planResponse(call, turns);
  return body['stream'] === true
    ? renderStream(plan, faults)
    : { kind: 'whole', parts: [JSON.stringify(renderWhole(plan, faults))] };
}

/**
 * A prompt that contains the word `blockme` is rejected. A model whose name contains `pauseturn` stops in the middle
 * of its text, and continues once its text is sent back.
 */
function planResponse(call: SimulatedCall, turns: readonly AnthropicTurn[]): AnthropicPlan {
  const { model, body } = call;
  const input = readScriptInput(call, turns);
  const showsThoughts = readRecord(body['thinking'])['display'] !== 'omitted';
  const toPlan = (script: ChatScript, stop = STOPS[script.finish]): AnthropicPlan => {
    return { model, blocks: buildBlocks(script, showsThoughts), stop, usage: script.usage };
  };
  if (input.promptTexts.some((text) => text.includes('blockme'))) {
    return toPlan(
      writeChatScript({
        ...input,
        callsTools: false,
        usesReasoning: false,
        usesWebSearch: false,
        maxTokens: 0,
      }),
      'refusal',
    );
  }
  const last = turns.at(-1);
  if (!model.includes('pauseturn')) {
    return toPlan(writeChatScript(input));
  }
  if (last?.role === 'assistant') {
    const script = writeChatScript({
      ...input,
      callsTools: false,
      usesReasoning: false,
      usesWebSearch: false,
    });
    const writtenWords = countWords(last.blocks.map(({ block }) => readText(block['text'])).join(''));
    return toPlan(keepPieces(script, script.pieces.slice(writtenWords)));
  }
  const script = writeChatScript(input);
  return script.pieces.length < 2
    ? toPlan(script)
    : toPlan(keepPieces(script, script.pieces.slice(0, Math.ceil(script.pieces.length / 2))), 'pause_turn');
}

function keepPieces(script: ChatScript, pieces: readonly string[]): ChatScript {
  const { reasoning, usage } = script;
  return { ...script, pieces, usage: { ...usage, completionTokens: reasoning.length + pieces.length } };
}

function readScriptInput(
  { body, model, settings }: SimulatedCall,
  turns: readonly AnthropicTurn[],
): ScriptInput {
  const allTools = readRecords(body['tools']);
  const tools = allTools
    .filter(isCustomTool)
    .map((tool) => ({ name: readText(tool['name']), parameters: tool['input_schema'] }));
  const choice = readRecord(body['tool_choice']);
  const readableTurns = readTurns(turns);
  const lastBlock = turns.at(-1)?.blocks.at(-1);
  return {
    model,
    promptTexts: [readContent(body['system'] ?? ''), ...readableTurns.map((turn) => turn.text)],
    receivedTokens: settings.promptTokens === 'received' ? countReceived(body) : null,
    lastUserText: findLastUserText(readableTurns),
    tools,
    forcedTool: choice['type'] === 'tool' ? readText(choice['name']) : null,
    callsTools:
      tools.length > 0 && choice['type'] !== 'none' && lastBlock !== undefined && !isToolResult(lastBlock),
    callsInParallel: model.includes('parallel') && choice['disable_parallel_tool_use'] !== true,
    earlierCalls: turns.flatMap(({ blocks }) => blocks.filter(({ type }) => type === 'tool_use')).length,
    schema: readRecord(readRecord(body['output_config'])['format'])['schema'] ?? null,
    maxTokens: Number(body['max_tokens']),
    usesReasoning: isThinkingOn(body),
    usesWebSearch: allTools.some(isServerSearch),
    replyWords: settings.replyWords,
  };
}
