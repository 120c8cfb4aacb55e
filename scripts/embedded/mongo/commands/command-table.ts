import { collectionCommands } from './collections.ts';
import type { Command } from './command.ts';
import { diagnosticCommands } from './diagnostics.ts';
import { explain } from './explain.ts';
import { findAndModify } from './find-and-modify.ts';
import { indexCommands } from './indexes.ts';
import { readCommands } from './reads.ts';
import { writeCommands } from './writes.ts';

/** Every supported command, by the name that drivers use. */
export const commandTable = new Map<string, Command>(
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
