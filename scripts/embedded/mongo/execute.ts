import { BSON } from 'bson';
import type { CommandContext, Command } from './commands/command.ts';
import { checkFields } from './commands/command.ts';
import type { Doc } from './bson/document.ts';
import { checkUnchanged } from './bson/document.ts';
import { MongoError, unsupported } from './errors.ts';
import { isNumber, toNumber } from './bson/numbers.ts';
import { RetryableStatements } from './retryable-writes.ts';
import type { Request } from './wire.ts';
import { collectionCommands } from './commands/collections.ts';
import { diagnosticCommands } from './commands/diagnostics.ts';
import { explain } from './commands/explain.ts';
import { findAndModify } from './commands/find-and-modify.ts';
import { indexCommands } from './commands/indexes.ts';
import { readCommands } from './commands/reads.ts';
import { writeCommands } from './commands/writes.ts';

export type Environment = Pick<CommandContext, 'store' | 'cursors' | 'status' | 'authentication'>;

/** Runs one command and returns its reply. An error of the client is a reply, too. */
export async function execute(environment: Environment, request: Request): Promise<Doc | Buffer> {
  try {
    return await run(environment, request);
  } catch (error) {
    if (error instanceof MongoError) {
      return { ok: 0, errmsg: error.message, code: error.code, codeName: error.codeName, ...error.details };
    }
    if (error instanceof BSON.BSONError)
      return { ok: 0, errmsg: error.message, code: 22, codeName: 'InvalidBSON' };
    // A bug in this server. Report it to the client, and log the stack trace.
    console.error(error);
    return { ok: 0, errmsg: `internal error: ${String(error)}`, code: 1, codeName: 'InternalError' };
  }
}

/** Every supported command, by the name that drivers use. */
const commandTable = new Map<string, Command>(
  Object.entries({
    ...diagnosticCommands,
    ...collectionCommands,
    ...indexCommands,
    ...readCommands,
    ...writeCommands,
    findAndModify,
    explain,
  }),
);

const statementsOf: Record<string, string> = { insert: 'documents', update: 'updates', delete: 'deletes' };

async function run(environment: Environment, { body, rawBody, sequences }: Request): Promise<Doc | Buffer> {
  const name = Object.keys(body)[0] ?? '';
  const command = commandTable.get(name);
  if (command?.isOpen !== true && !environment.authentication.isDone)
    throw new MongoError('Unauthorized', `Command ${name} requires authentication`);
  if (
    body.autocommit !== undefined ||
    body.startTransaction !== undefined ||
    /^(commit|abort)Transaction$/.test(name)
  ) {
    throw unsupported('a multi-document transaction', 'OperationNotSupportedInTransaction');
  }
  if (command === undefined) throw unsupported(`no such command: '${name}', which`, 'CommandNotFound');
  checkUnchanged(body, rawBody);
  checkFields(name, command, body, sequences);
  const statements = sequences.get(statementsOf[name] ?? '') ?? body[statementsOf[name] ?? ''];
  environment.status.count(name, Array.isArray(statements) ? statements.length : 1);
  const maxTimeMs = readMaxTime(body.maxTimeMS);
  const context: CommandContext = {
    ...environment,
    db: String(body.$db),
    name,
    body,
    sequences,
    deadlineMs: maxTimeMs > 0 ? performance.now() + maxTimeMs : undefined,
  };
  if (command.writes !== true) return command.run(context);
  return environment.store.write(() => {
    const statements = new RetryableStatements(environment.store, body);
    const reply = command.run({ ...context, statements });
    statements.save();
    return reply;
  });
}

/** 0 means no limit. */
function readMaxTime(value: unknown): number {
  if (value === undefined) return 0;
  const maxTimeMs = toNumber(value);
  if (isNumber(value) && Number.isInteger(maxTimeMs) && maxTimeMs >= 0 && maxTimeMs < 2 ** 31)
    return maxTimeMs;
  throw unsupported(`a maxTimeMS other than a whole number from 0 to ${2 ** 31 - 1}`, 'BadValue');
}
