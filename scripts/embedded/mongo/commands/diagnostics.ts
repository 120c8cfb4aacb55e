import { maxDocumentBytes } from '../bson/document.ts';
import { maxMessageBytes } from '../wire.ts';
import { serverVersion } from '../server-status.ts';
import type { Command } from './command.ts';

/** Reports a primary of a one-member replica set. Drivers then use sessions and retry writes. */
const hello: Command = {
  isOpen: true,
  fields: [
    'helloOk',
    'client',
    'compression',
    'topologyVersion',
    'maxAwaitTimeMS',
    'loadBalanced',
    'saslSupportedMechs',
    'speculativeAuthenticate',
    'backpressure',
  ],
  run: ({ status: { address, setName }, authentication, body }) => ({
    helloOk: true,
    ismaster: true,
    isWritablePrimary: true,
    secondary: false,
    setName,
    setVersion: 1,
    hosts: [address],
    primary: address,
    me: address,
    maxBsonObjectSize: maxDocumentBytes,
    maxMessageSizeBytes: maxMessageBytes,
    maxWriteBatchSize: 100_000,
    localTime: new Date(),
    logicalSessionTimeoutMinutes: 30,
    connectionId: 1,
    minWireVersion: 0,
    maxWireVersion: 21,
    readOnly: false,
    ...authentication.buildHelloFields(body),
    ok: 1,
  }),
};

export const diagnosticCommands: Record<string, Command> = {
  hello,
  isMaster: hello,
  ismaster: hello,
  ping: { isOpen: true, fields: [], run: () => ({ ok: 1 }) },
  saslStart: {
    isOpen: true,
    fields: ['mechanism', 'payload', 'autoAuthorize', 'options'],
    run: ({ authentication, body, db }) => authentication.start(body, db),
  },
  saslContinue: {
    isOpen: true,
    fields: ['conversationId', 'payload'],
    run: ({ authentication, body }) => authentication.continue(body),
  },
  // The only state of a session is the results of its retryable writes, which expire by themselves.
  endSessions: { fields: ['writeConcern'], run: () => ({ ok: 1 }) },
  buildInfo: { fields: [], run: () => ({ version: serverVersion, ok: 1 }) },
  serverStatus: { fields: [], run: ({ status }) => status.describe() },
};
