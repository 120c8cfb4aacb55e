import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { modelTypes } from '../../../shared/contract/models.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import type { FileSummary } from '../../../shared/work/files/file-record.ts';
import { FileWriter, fileTooLarge } from '../../../shared/work/files/file-writer.ts';
import { preAdmitBody } from '../../admission/pre-admit.ts';
import { maxFileSeconds, minFileSeconds } from '../../../shared/contract/batch-terms.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { readChunks } from '../../http/bodies/read-chunks.ts';
import { UploadForm } from '../../http/bodies/upload-form.ts';
import { acquireUploadMemory } from '../../http/bodies/upload-memory.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { holderOf } from '../../http/request/holder.ts';
import type { Services } from '../../services.ts';
import { presentFile } from './present-file.ts';

/** The parts of a form other than the content of the file. */
const maxFormBytes = 32 * 1024;
const maxNameChars = 255;
const fileSuffix = '.jsonl';
/** The name of a file that is sent without one. */
const defaultName = 'upload';
/** No header may contain them. */
const controlCharacter = /\p{Cc}/u;

/** Stores a file as it arrives, and checks its lines on the way. Nothing of an upload that fails is kept. */
export const createFile = defineEndpoint(
  operations.createFile,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    if (context.is('multipart/form-data') !== 'multipart/form-data')
      throw new AppError('unsupported_media_type', {
        message: 'Send the file as "multipart/form-data", with the parts "file" and "purpose".',
        messageRu: 'Отправьте файл в формате «multipart/form-data», с частями «file» и «purpose».',
      });
    const { accountId } = holderOf(context);
    const { signal } = context.state;
    // Absent for chunked bodies.
    const announced = context.request.length ?? 0;
    const { maxFileBytes } = services.config.files;
    if (announced > maxFileBytes + maxFormBytes) throw fileTooLarge(maxFileBytes);
    const upload = new FileUpload(services, context);
    // Until the upload has succeeded, its bytes may count as rejected.
    const countedBytes = await services.rejectedBodies.waitToSend(accountId, announced, signal);
    let rejectedBytes = 0;
    try {
      await preAdmitBody(services, context, modelTypes);
      context.body = presentFile(await receiveWithMemory(services, context, upload, announced));
    } catch (error) {
      if (error instanceof AppError && error.status < 500) rejectedBytes = upload.receivedBytes;
      throw error;
    } finally {
      services.rejectedBodies.add(accountId, rejectedBytes - countedBytes);
    }
  },
);

async function receiveWithMemory(
  services: Services,
  context: ApiContext,
  upload: FileUpload,
  announcedBytes: number,
): Promise<FileSummary> {
  const memory = await acquireUploadMemory(services, context);
  try {
    return await upload.receive(Math.max(0, announcedBytes - maxFormBytes));
  } finally {
    // The caller does not wait until what was stored is removed.
    const ended = upload.close().finally(() => memory.release());
    runInBackground(ended, 'ending an upload', services.log);
  }
}

interface Received {
  readonly name: string;
  readonly lifetimeSeconds: number;
}

/** A file that is being uploaded. */
class FileUpload {
  readonly #services: Services;
  readonly #context: ApiContext;
  readonly #writer: FileWriter;
  #receivedBytes = 0;

  constructor(services: Services, context: ApiContext) {
    this.#services = services;
    this.#context = context;
    this.#writer = new FileWriter(services, holderOf(context).accountId, context.state.signal);
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /**
   * @param minBytes that the file has at least
   * @throws AppError `payload_too_large`, `validation_failed`, `service_unavailable`, `deadline_exceeded`
   */
  async receive(minBytes: number): Promise<FileSummary> {
    await this.#writer.begin(minBytes);
    const { name, lifetimeSeconds } = await this.#readForm();
    return (await this.#writer.end(name, lifetimeSeconds)).file;
  }

  async #readForm(): Promise<Received> {
    const { bodyTimes, config } = this.#services;
    const { req, res } = this.#context;
    const { maxFileBytes } = config.files;
    const fields = new UploadFields();
    const form = new UploadForm(this.#context.get('content-type'), fields);
    let bodyBytes = 0;
    const take = async (pieces: readonly Buffer[]): Promise<void> => {
      for (const piece of pieces) await this.#writer.write(piece);
    };
    if (req.headers.expect !== undefined && req.httpVersion !== '1.0') res.writeContinue();
    await readChunks(req, bodyTimes, {
      isLarge: () => true,
      onChunk: async (chunk) => {
        this.#receivedBytes += chunk.length;
        bodyBytes += chunk.length;
        if (bodyBytes > maxFileBytes + maxFormBytes) throw fileTooLarge(maxFileBytes);
        await take(await form.push(chunk));
      },
    });
    await take(await form.end());
    return fields.check();
  }

  /** Removes what is stored of an upload that has failed. */
  async close(): Promise<void> {
    await this.#writer.abort();
  }
}

/** The fields of the form, each checked as soon as it is known. */
class UploadFields {
  #name = '';
  #purpose: string | null = null;
  #lifetimeSeconds = maxFileSeconds;

  readonly onFile = (name: string): void => {
    if (!isFileName(name)) {
      const msg = `The file is named ${JSON.stringify(shorten(name))}. Send JSON Lines, in a file whose name ends in ${fileSuffix}.`;
      throw invalidField(['body', 'file'], msg, { type: 'file_name' });
    }
    this.#name = name === '' ? defaultName : name;
  };

  readonly onField = (name: string, value: string): void => {
    switch (name) {
      case 'purpose':
        this.#purpose = value;
        if (value !== 'batch') {
          const msg = `Files with the purpose ${JSON.stringify(shorten(value))} are not supported. The only purpose of uploads is "batch".`;
          throw invalidField(['body', name], msg, { type: 'enum' });
        }
        break;
      case 'expires_after[anchor]':
        if (value !== 'created_at')
          throw invalidField(['body', name], 'must be created_at', { type: 'enum' });
        break;
      case 'expires_after[seconds]':
        this.#lifetimeSeconds = /^\d{1,8}$/.test(value) ? Number(value) : 0;
        if (this.#lifetimeSeconds < minFileSeconds || this.#lifetimeSeconds > maxFileSeconds) {
          const msg = `must be a whole number from ${minFileSeconds} to ${maxFileSeconds}`;
          throw invalidField(['body', name], msg);
        }
        break;
      default:
    }
  };

  check(): Received {
    if (this.#purpose === null)
      throw invalidField(['body', 'purpose'], 'The form has no purpose. Send "batch".', { type: 'missing' });
    return { name: this.#name, lifetimeSeconds: this.#lifetimeSeconds };
  }
}

/** Clients give content that is in memory a name without an extension, or none. */
function isFileName(name: string): boolean {
  const hasKnownType = !name.includes('.') || name.toLowerCase().endsWith(fileSuffix);
  return hasKnownType && name.length <= maxNameChars && !controlCharacter.test(name);
}
