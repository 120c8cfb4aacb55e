import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { readDataType } from '../../contract/data-uri.ts';
import type { Message } from '../../contract/chat-messages.ts';
import { invalidField } from '../../contract/errors.ts';
import { reasonTexts } from '../../contract/reason-texts.ts';
import { joinWords } from '../../contract/describe-issue.ts';

/** File extensions by media type, for files sent without a name. */
const extensionOfType = new Map(
  Object.entries({
    'application/pdf': 'pdf',
    'application/json': 'json',
    'text/plain': 'txt',
    'text/csv': 'csv',
    'text/html': 'html',
    'text/markdown': 'md',
  }),
);

/**
 * The input modality that a model must support for each kind of part. Files are checked against `supported_file_types`.
 */
const modalityOfPart = { image_url: 'image', input_audio: 'audio' } as const;

/**
 * Checks that the model accepts the images, audio and files in the messages. A model without `input_modalities` in its
 * catalog entry is not checked.
 * @throws AppError `validation_failed`
 */
export function checkParts(messages: readonly Message[], model: CatalogModel): void {
  checkModalities(messages, model);
  checkFiles(messages, model);
}

/**
 * Requires content in at least one message. Other messages may be empty: a system prompt that is not set, a tool result
 * without output, a reply without text, and the empty messages with which agents ask a model to continue.
 * @param messages with only the fields that are sent to the vendor
 * @throws AppError `validation_failed`
 */
export function checkContents(messages: readonly Message[]): void {
  if (messages.some((message) => Object.entries(message).some(hasContent))) return;
  const last = messages.length - 1;
  throw invalidField(['body', 'messages', last, 'content'], reasonTexts.noContent.en);
}

/** Fields that are not content. */
const labels = new Set(['role', 'name', 'tool_call_id', 'type']);

function hasContent([field, value]: [string, unknown]): boolean {
  if (labels.has(field) || value === null || value === undefined || value === '') return false;
  return typeof value === 'object' ? Object.entries(value).some(hasContent) : true;
}

function checkModalities(messages: readonly Message[], { id, published }: CatalogModel): void {
  const modalities = published.input_modalities;
  if (modalities === null) return;
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, part] of content.entries()) {
      for (const [kind, modality] of Object.entries(modalityOfPart)) {
        const isPresent = part.type === kind || Boolean(part[kind as keyof typeof modalityOfPart]);
        if (!isPresent || modalities.includes(modality)) continue;
        const msg = `${id} accepts only ${joinWords(modalities, 'and')} input: remove this part, or choose another model`;
        throw invalidField(['body', 'messages', i, 'content', j], msg);
      }
    }
  }
}

function checkFiles(messages: readonly Message[], { id, published }: CatalogModel): void {
  const acceptedTypes = published.supported_file_types ?? [];
  let count = 0;
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, part] of content.entries()) {
      if (part.type !== 'file' && !part.file) continue;
      const at = ['body', 'messages', i, 'content', j];
      if (acceptedTypes.length === 0)
        throw invalidField(at, `${id} does not accept files: remove this part, or choose another model`);
      const { file_data: data, file_id: fileId, filename } = part.file ?? {};
      if (fileId)
        throw invalidField([...at, 'file', 'file_id'], 'is not supported: send the file as file_data');
      const mediaType = readDataType(data ?? '');
      if (mediaType === null) {
        const example = 'data:application/pdf;base64,…';
        throw invalidField([...at, 'file', 'file_data'], `must be a base64 data URI such as ${example}`);
      }
      const extension = readExtension(filename) ?? extensionOfType.get(mediaType);
      if (extension === undefined || !acceptedTypes.includes(extension)) {
        throw invalidField(
          [...at, 'file'],
          `must be a file of one of these types: ${acceptedTypes.join(', ')}`,
        );
      }
      // Some vendors decide by the media type alone how to read a file, and bill video and audio by duration. So a
      // document must not be declared as either.
      if (isVideoOrAudio(mediaType) && extensionOfDocument.test(extension)) {
        const msg = `has the media type ${mediaType}, but its filename ends in .${extension}: make them match`;
        throw invalidField([...at, 'file', 'file_data'], msg);
      }
      count += 1;
    }
  }
  const maxFiles = published.max_file_count;
  if (maxFiles !== null && count > maxFiles) {
    throw invalidField(
      ['body', 'messages'],
      `must contain at most ${maxFiles} files for ${id}: remove the others, or send them in another request`,
    );
  }
}

const extensionOfDocument =
  /^(?:pdf|txt|md|csv|tsv|json|x?html?|xml|ya?ml|log|rtf|docx?|xlsx?|pptx?|od[tsp]|epub|zip)$/;

const isVideoOrAudio = (mediaType: string): boolean => /^(?:video|audio)\//.test(mediaType);

function readExtension(filename: string | null | undefined): string | undefined {
  return /\.([A-Za-z0-9]+)$/.exec(filename ?? '')?.[1]?.toLowerCase();
}
