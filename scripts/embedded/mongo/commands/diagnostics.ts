import { maxDocumentBytes } from '../bson/document.ts';
import { serverVersion } from '../server-status.ts';
import { maxMessageBytes } from '../wire.ts';
import type { Command } from './command.ts';

/** Says that this is the primary of a replica set of one: drivers then use sessions and retry writes. */
const hello: Command = {
  fields: [
    'helloOk',
    'client',
    'compression',
    'topologyVersion',
    'maxAwaitTimeMS',
    'loadBalanced',
    'saslSupportedMechs',
    'backpressure',
  ],
  run: ({ status: { address, setName } }) => ({
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
    ok: 1,
  }),
};

const buildInfo: Command = {
  fields: [],
  run: () => ({
    version: serverVersion,
    versionArray: serverVersion.split('.').map(Number).concat(0),
    gitVersion: 'embedded',
    modules: [],
    maxBsonObjectSize: maxDocumentBytes,
    ok: 1,
  }),
};

export const diagnosticCommands: Record<string, Command> = {
  hello,
  isMaster: hello,
  ismaster: hello,
  buildInfo,
  buildinfo: buildInfo,
  ping: { fields: [], run: () => ({ ok: 1 }) },
  // Nothing is kept for a session but the answers to its retryable writes, which expire by themselves.
  endSessions: { fields: [], run: () => ({ ok: 1 }) },
  serverStatus: { fields: [], run: ({ status }) => status.describe() },
};
