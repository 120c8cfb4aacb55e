import { type ScriptInput, writeChatScript } from '../chat-script.ts';
import { countReceived } from '../count-received.ts';
import { findLastUserText } from '../conversation.ts';
import type { SimulatedResponse, SimulatedCall } from '../dialect.ts';
import { renderWhole } from './gemini-response.ts';
import { type GeminiContent, readContents, readPartTexts, toTurns } from './gemini-contents.ts';
import { type GeminiRequestError, createFieldError } from './gemini-error.ts';
import { parseGeminiMessage } from './gemini-parse.ts';
import { checkGenerateRequest } from './gemini-rules.ts';
import { GENERATE_CONTENT_REQUEST } from './gemini-shapes.ts';
import type { GeminiPlan } from './gemini-steps.ts';
import { renderBlocked, renderStream } from './gemini-stream.ts';
import { type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';

/**
 * A model reasons if the request sets a level or a budget other than 0, or requests its thoughts. A prompt that
 * contains the word `blockme` is blocked.
 */
export function handleGeminiChat(call: SimulatedCall): SimulatedResponse | GeminiRequestError {
  const { model, faults } = call;
  const { framing } = call.operation;
  const { message, violations } = parseGeminiMessage(call.body, GENERATE_CONTENT_REQUEST);
  if (violations.length > 0) {
    return createFieldError(violations);
  }
  const problem = checkGenerateRequest(model, message);
  if (problem !== null) {
    return { errorMessage: problem };
  }
  const plan = planResponse(call, message);
  const streamFraming = framing === 'events' || framing === 'array' ? framing : null;
  if (plan.isBlocked) {
    return renderBlocked(plan, streamFraming, faults);
  }
  return streamFraming === null
    ? { kind: 'whole', parts: [JSON.stringify(renderWhole(plan, faults), null, 2)] }
    : renderStream(plan, streamFraming, faults);
}

function planResponse(call: SimulatedCall, message: JsonRecord): GeminiPlan {
  const { model } = call;
  const config = readRecord(message['generationConfig']);
  const modalities = Array.isArray(config['responseModalities'])
    ? config['responseModalities'].map((name) => String(name).toUpperCase())
    : [];
  const returnsImage = modalities.includes('IMAGE');
  const input = readScriptInput(call, message, config);
  const script = writeChatScript(returnsImage ? { ...input, callsTools: false } : input);
  const returnsOnlyImage = returnsImage && !modalities.includes('TEXT');
  return {
    model,
    script: returnsOnlyImage ? { ...script, pieces: [], searchQuery: null } : script,
    candidates: Number(config['candidateCount'] ?? 1),
    showsThoughts: readRecord(config['thinkingConfig'])['includeThoughts'] === true,
    isSigned: input.usesReasoning || model.includes('gemini-3'),
    hasCallIds: model.includes('ids'),
    isEdit: readContents(message).some(({ parts }) => parts.some((part) => part['inlineData'] !== undefined)),
    imageFault: call.faults.image,
    imageRatio: returnsImage ? readRatio(readRecord(config['imageConfig'])['aspectRatio']) : null,
    isBlocked: input.promptTexts.some((text) => text.includes('blockme')),
  };
}

function readRatio(ratio: unknown): number {
  const [, width = '1', height = '1'] = /^(\d+):(\d+)$/.exec(readText(ratio)) ?? [];
  return Number(width) / Number(height);
}

function readScriptInput(
  { model, settings }: SimulatedCall,
  message: JsonRecord,
  config: JsonRecord,
): ScriptInput {
  const contents = readContents(message);
  const turns = toTurns(contents);
  const tools = readRecords(message['tools']);
  const functions = tools
    .flatMap((tool) => readRecords(tool['functionDeclarations']))
    .map((tool) => ({
      name: readText(tool['name']),
      parameters: tool['parametersJsonSchema'] ?? tool['parameters'],
    }));
  const { mode, allowedFunctionNames } = readRecord(
    readRecord(message['toolConfig'])['functionCallingConfig'],
  );
  const isJson = config['responseMimeType'] === 'application/json';
  const system = readRecords(readRecord(message['systemInstruction'])['parts']);
  return {
    model,
    promptTexts: [readPartTexts(system), ...turns.map((turn) => turn.text)],
    receivedTokens: settings.promptTokens === 'received' ? countReceived(message) : null,
    lastUserText: findLastUserText(turns),
    tools: functions,
    forcedTool: Array.isArray(allowedFunctionNames) ? String(allowedFunctionNames[0]) : null,
    callsTools:
      functions.length > 0 && readText(mode).toUpperCase() !== 'NONE' && !endsWithResponse(contents),
    callsInParallel: model.includes('parallel'),
    earlierCalls: contents.flatMap(({ calls }) => calls).length,
    schema: config['responseJsonSchema'] ?? config['responseSchema'] ?? (isJson ? {} : null),
    maxTokens: config['maxOutputTokens'] === undefined ? null : Number(config['maxOutputTokens']),
    usesReasoning: isThinkingOn(readRecord(config['thinkingConfig'])),
    usesWebSearch: tools.some((tool) => tool['googleSearch'] !== undefined),
    replyWords: settings.replyWords,
  };
}

function endsWithResponse(contents: readonly GeminiContent[]): boolean {
  return contents.at(-1)?.parts.at(-1)?.['functionResponse'] !== undefined;
}

function isThinkingOn({ includeThoughts, thinkingBudget, thinkingLevel }: JsonRecord): boolean {
  if (thinkingBudget !== undefined) {
    return Number(thinkingBudget) !== 0;
  }
  return thinkingLevel !== undefined || includeThoughts === true;
}
