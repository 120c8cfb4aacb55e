// Simulates the features of a real mongod that `npm start` relies on: `fake-mongod.js --replSet … --keyFile …` stores
// its replica set and its users under --dbpath and requires authentication. At first it has only the internal user,
// whose password is the content of the key file.
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Binary } from 'bson';
import { ScramConversation, deriveCredential } from '../../../scripts/embedded/mongo/auth/scram.ts';
import type { Doc } from '../../../scripts/embedded/mongo/bson/document.ts';
import { MongoError } from '../../../scripts/embedded/mongo/errors.ts';
import { MessageSplitter, encodeReply, parseMessage } from '../../../scripts/embedded/mongo/wire.ts';

const { values } = parseArgs({
  options: {
    replSet: { type: 'string' },
    bind_ip: { type: 'string' },
    port: { type: 'string' },
    dbpath: { type: 'string' },
    keyFile: { type: 'string' },
    setParameter: { type: 'string' },
    nounixsocket: { type: 'boolean' },
    quiet: { type: 'boolean' },
  },
});
const address = `127.0.0.1:${values.port}`;
const statePath = join(values.dbpath!, 'state.json');

interface State {
  config: { _id: string; version: number; members: { _id: number; host: string }[] } | null;
  users: Record<string, string>;
}

const state: State = existsSync(statePath)
  ? (JSON.parse(readFileSync(statePath, 'utf8')) as State)
  : { config: null, users: {} };
const save = (): void => writeFileSync(statePath, JSON.stringify(state));

if ((statSync(values.keyFile!).mode & 0o077) !== 0)
  throw new Error('permissions on the key file are too open');
if (values.setParameter !== 'enableLocalhostAuthBypass=false') throw new Error('anybody would get in');
if (values.bind_ip !== '127.0.0.1' || values.nounixsocket !== true) throw new Error('others can reach it');
const key = readFileSync(values.keyFile!, 'utf8').trim();
if (!/^[A-Za-z\d+/=]{6,1024}$/.test(key)) throw new Error('invalid key');

const passwordOf = (name: string): string | undefined =>
  name === 'local.__system' ? key : state.users[name];
const isMember = (): boolean => state.config?.members[0]?.host === address;

/** One connection, with its authentication exchange and its user. */
class Session {
  user: string | null = null;
  #claimedUser = '';
  #scram: ScramConversation | null = null;

  async run(body: Doc): Promise<Doc> {
    const name = Object.keys(body)[0]!;
    const publicCommands: Record<string, (() => Doc | Promise<Doc>) | undefined> = {
      hello: () => hello(body),
      ismaster: () => hello(body),
      saslStart: () => this.#start(body),
      saslContinue: () => this.#continue(body),
    };
    const publicCommand = publicCommands[name];
    if (publicCommand !== undefined) return await publicCommand();
    if (this.user === null) throw new MongoError('Unauthorized', `Command ${name} requires authentication`);
    const command = name.startsWith('replSet') && this.user !== 'local.__system' ? undefined : commands[name];
    if (command === undefined) throw new MongoError('Unauthorized', `not authorized to run ${name}`);
    return command(body);
  }

  async #start({ mechanism, payload, $db }: Doc): Promise<Doc> {
    const clientFirst = toText(payload);
    this.#claimedUser = `${String($db)}.${/n=([^,]*),r=/.exec(clientFirst)?.[1]}`;
    const password = passwordOf(this.#claimedUser);
    if (password === undefined || mechanism !== 'SCRAM-SHA-256')
      throw new MongoError('AuthenticationFailed', 'Authentication failed.');
    const credential = await deriveCredential(
      this.#claimedUser.slice(this.#claimedUser.indexOf('.') + 1),
      password,
    );
    this.#scram = new ScramConversation(credential, clientFirst);
    return {
      conversationId: 1,
      done: false,
      payload: new Binary(Buffer.from(this.#scram.serverFirst)),
      ok: 1,
    };
  }

  #continue({ payload }: Doc): Doc {
    const serverFinal = this.#scram!.finish(toText(payload));
    this.user = this.#claimedUser;
    return { conversationId: 1, done: true, payload: new Binary(Buffer.from(serverFinal)), ok: 1 };
  }
}

const toText = (payload: unknown): string => Buffer.from((payload as Binary).value()).toString();

function hello({ saslSupportedMechs }: Doc): Doc {
  const supportsScram =
    typeof saslSupportedMechs === 'string' && passwordOf(saslSupportedMechs) !== undefined;
  const isPrimary = isMember();
  return {
    helloOk: true,
    isWritablePrimary: isPrimary,
    ismaster: isPrimary,
    secondary: false,
    ...(isPrimary
      ? { setName: state.config!._id, setVersion: 1, hosts: [address], primary: address, me: address }
      : { isreplicaset: true }),
    ...(supportsScram ? { saslSupportedMechs: ['SCRAM-SHA-256'] } : {}),
    maxBsonObjectSize: 16_777_216,
    maxMessageSizeBytes: 48_000_000,
    maxWriteBatchSize: 100_000,
    logicalSessionTimeoutMinutes: 30,
    localTime: new Date(),
    minWireVersion: 0,
    maxWireVersion: 21,
    ok: 1,
  };
}

const fail = (code: number, errmsg: string): Doc => ({ ok: 0, code, errmsg });

const commands: Record<string, (body: Doc) => Doc> = {
  replSetGetConfig: () => (state.config === null ? fail(94, 'no config') : { config: state.config, ok: 1 }),
  replSetInitiate: (body) => {
    state.config = { version: 1, ...(body['replSetInitiate'] as object) } as State['config'];
    save();
    return { ok: 1 };
  },
  replSetReconfig: (body) => {
    state.config = body['replSetReconfig'] as State['config'];
    save();
    return { ok: 1 };
  },
  updateUser: (body) => setUser(body, 'updateUser'),
  createUser: (body) => setUser(body, 'createUser'),
  ping: () => ({ ok: 1 }),
  endSessions: () => ({ ok: 1 }),
};

function setUser(body: Doc, command: 'updateUser' | 'createUser'): Doc {
  if (!isMember()) return fail(10_107, 'not primary');
  const name = `${String(body['$db'])}.${String(body[command])}`;
  const isKnown = state.users[name] !== undefined;
  if (isKnown !== (command === 'updateUser')) return fail(isKnown ? 51_003 : 11, 'User');
  state.users[name] = String(body['pwd']);
  save();
  return { ok: 1 };
}

function serve(socket: Socket): void {
  const session = new Session();
  const splitter = new MessageSplitter();
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    splitter.add(chunk);
    for (let message = splitter.next(); message !== null; message = splitter.next()) {
      const request = parseMessage(message);
      session.run(request.body).then(
        (reply) => socket.write(encodeReply(request, reply)),
        (error: unknown) => {
          const { code, message: errmsg } = error as MongoError;
          socket.write(encodeReply(request, { ok: 0, code, errmsg }));
        },
      );
    }
  });
}

createServer(serve).listen(Number(values.port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
