/**
 * The fields of Google's messages, from the v1beta discovery document. The vendor rejects any other field, so this
 * list is as important as the responses. Fields that the simulator does not examine are `any`.
 */
export type Shape =
  | 'any'
  | 'boolean'
  | 'bytes'
  | 'number'
  | 'struct'
  | 'text'
  | { readonly list: Shape }
  | { readonly map: Shape }
  | { readonly fields: () => Readonly<Record<string, Shape>> };

const message = (fields: Readonly<Record<string, Shape>>): Shape => ({ fields: () => fields });
const list = (shape: Shape): Shape => ({ list: shape });

/** Google's schema format, which is a subset of JSON Schema. */
const schema: Shape = {
  fields: () => ({
    anyOf: list(schema),
    default: 'any',
    description: 'text',
    enum: list('text'),
    example: 'any',
    format: 'text',
    items: schema,
    maxItems: 'number',
    maxLength: 'number',
    maxProperties: 'number',
    maximum: 'number',
    minItems: 'number',
    minLength: 'number',
    minProperties: 'number',
    minimum: 'number',
    nullable: 'boolean',
    pattern: 'text',
    properties: { map: schema },
    propertyOrdering: list('text'),
    required: list('text'),
    title: 'text',
    type: 'text',
  }),
};

const part = message({
  codeExecutionResult: 'any',
  executableCode: 'any',
  fileData: message({ displayName: 'text', fileUri: 'text', mimeType: 'text' }),
  functionCall: message({ args: 'struct', id: 'text', name: 'text' }),
  functionResponse: message({
    id: 'text',
    name: 'text',
    parts: 'any',
    response: 'struct',
    scheduling: 'text',
    willContinue: 'boolean',
  }),
  inlineData: message({ data: 'bytes', displayName: 'text', mimeType: 'text' }),
  mediaResolution: 'any',
  partMetadata: 'struct',
  text: 'text',
  thought: 'boolean',
  thoughtSignature: 'bytes',
  toolCall: 'any',
  toolResponse: 'any',
  videoMetadata: 'any',
});

const content = message({ parts: list(part), role: 'text' });

const tool = message({
  codeExecution: 'any',
  computerUse: 'any',
  fileSearch: 'any',
  functionDeclarations: list(
    message({
      behavior: 'text',
      description: 'text',
      name: 'text',
      parameters: schema,
      parametersJsonSchema: 'any',
      response: schema,
      responseJsonSchema: 'any',
    }),
  ),
  googleMaps: 'any',
  googleSearch: 'any',
  googleSearchRetrieval: 'any',
  mcpServers: 'any',
  urlContext: 'any',
});

const generationConfig = message({
  candidateCount: 'number',
  enableEnhancedCivicAnswers: 'boolean',
  frequencyPenalty: 'number',
  imageConfig: message({ aspectRatio: 'text', imageSize: 'text' }),
  logprobs: 'number',
  maxOutputTokens: 'number',
  mediaResolution: 'text',
  presencePenalty: 'number',
  responseJsonSchema: 'any',
  responseLogprobs: 'boolean',
  responseMimeType: 'text',
  responseModalities: list('text'),
  responseSchema: schema,
  seed: 'number',
  speechConfig: 'any',
  stopSequences: list('text'),
  temperature: 'number',
  thinkingConfig: message({ includeThoughts: 'boolean', thinkingBudget: 'number', thinkingLevel: 'text' }),
  topK: 'number',
  topP: 'number',
});

export const GENERATE_CONTENT_REQUEST = message({
  cachedContent: 'text',
  contents: list(content),
  generationConfig,
  model: 'text',
  safetySettings: list(message({ category: 'text', method: 'text', threshold: 'text' })),
  serviceTier: 'text',
  store: 'boolean',
  systemInstruction: content,
  toolConfig: message({
    functionCallingConfig: message({ allowedFunctionNames: list('text'), mode: 'text' }),
    includeServerSideToolInvocations: 'boolean',
    retrievalConfig: 'any',
  }),
  tools: list(tool),
});

export const BATCH_EMBED_REQUEST = message({
  requests: list(
    message({ content, model: 'text', outputDimensionality: 'number', taskType: 'text', title: 'text' }),
  ),
});
