import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { type AppError, invalidField } from '../../contract/errors.ts';
import type { DocumentReader } from './document-reader.ts';
import type { CountedFile, FileFault } from './file-content.ts';

type Location = readonly (string | number)[];

/**
 * Reads and tokenizes the files of a chat in order. A few kilobytes of PDF can unpack to a million tokens, so the
 * reservation for a file depends on its content, not its size.
 * @throws AppError `validation_failed`, `context_length_exceeded`, `queue_full`; the signal's reason
 */
export async function readFiles(
  documents: Pick<DocumentReader, 'read'>,
  accountId: string,
  { messages }: ChatRequest,
  model: CatalogModel,
  signal: AbortSignal,
): Promise<CountedFile[]> {
  const files: CountedFile[] = [];
  let maxTokens = model.context;
  const { tokensPerPage, tokensPerImage, tokenizer } = model;
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, { file }] of content.entries()) {
      if (!file) continue;
      const { filename, file_data: dataUri } = file;
      const sent = { filename: filename ?? '', dataUri: dataUri ?? '' };
      const request = { ...sent, maxTokens, tokensPerPage, tokensPerImage, tokenizer };
      const result = await documents.read(accountId, request, signal);
      if ('fault' in result) {
        throw toFileError(result, model, ['body', 'messages', i, 'content', j, 'file', 'file_data']);
      }
      files.push(result);
      maxTokens = Math.max(
        0,
        maxTokens - result.textTokens - result.pages * tokensPerPage - result.imageTokens,
      );
    }
  }
  return files;
}

function toFileError({ fault, kind }: FileFault, model: CatalogModel, loc: Location): AppError {
  const name = kind === 'pdf' ? 'PDF' : 'document';
  switch (fault) {
    case 'no_data_uri':
      return invalidField(
        loc,
        'must be a data URI of canonical base64, such as data:application/pdf;base64,…',
      );
    case 'too_long':
      return invalidField(
        loc,
        `The ${name} is longer than the model's context of ${model.context} tokens. Send fewer pages.`,
        { code: 'context_length_exceeded' },
      );
    case 'protected':
      return invalidField(loc, `The ${name} is password-protected. Remove the password, and send it again.`);
    case 'unreadable':
      return invalidField(
        loc,
        `The ${name} cannot be read: it is damaged or has a different file type. Save it again, and check its type.`,
      );
    case 'too_large':
      return invalidField(
        loc,
        `Reading the ${name} takes too much time or memory. Send fewer pages, or send its text.`,
      );
    default:
      return fault satisfies never;
  }
}
