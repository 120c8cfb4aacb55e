import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { BSON, Binary } from 'bson';
import { MessageSplitter } from '../../scripts/embedded/mongo/wire.ts';

/** A hand-written MongoDB protocol client, to send what a driver would not send. */
export class MongoWireClient {
  readonly socket: Socket;
  readonly #splitter = new MessageSplitter();
  readonly #pendingReplies: ((message: Buffer) => void)[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => undefined); // `close` follows.
    socket.on('data', (chunk) => {
      this.#splitter.add(chunk);
      for (let message = this.#splitter.next(); message !== null; message = this.#splitter.next())
        this.#pendingReplies.shift()?.(message);
    });
  }

  /** Connects to the server of a URL; only the address is used. */
  static async connect(url: string): Promise<MongoWireClient> {
    const client = new MongoWireClient(connect(Number(new URL(url).port), '127.0.0.1'));
    await once(client.socket, 'connect');
    return client;
  }

  /** @param chunkBytes the length of the pieces that the message is sent in */
  async command(
    body: BSON.Document,
    { db = 'test', sequence, chunkBytes = Infinity }: MongoCommandOptions = {},
  ): Promise<BSON.Document> {
    const message = encodeMessage({ ...body, $db: db }, sequence);
    const reply = this.#waitForReply();
    for (let at = 0; at < message.length; at += chunkBytes)
      this.socket.write(message.subarray(at, at + chunkBytes));
    return BSON.deserialize((await reply).subarray(21));
  }

  async legacyHello(): Promise<BSON.Document> {
    const start = [
      Buffer.alloc(4),
      Buffer.from('admin.$cmd\0'),
      Buffer.from([0, 0, 0, 0, 255, 255, 255, 255]),
    ];
    const reply = this.#waitForReply();
    this.socket.write(
      withHeader(2004, Buffer.concat([...start, BSON.serialize({ isMaster: 1, helloOk: true })])),
    );
    return BSON.deserialize((await reply).subarray(36));
  }

  /** SCRAM-SHA-256 as in its RFC. @returns the server's reply to the last step, or to the step that failed */
  async authenticate(
    { username, password }: { username: string; password: string },
    { db = 'admin', skipEmptyExchange = true } = {},
  ): Promise<BSON.Document> {
    const bare = `n=${username},r=${randomBytes(18).toString('base64')}`;
    const mechanism = 'SCRAM-SHA-256';
    const options = { skipEmptyExchange };
    const start = { saslStart: 1, mechanism, payload: toBinary(`n,,${bare}`), options };
    const first = await this.command(start, { db });
    if (first.ok !== 1) return first;
    const serverFirst = toText(first.payload);
    const { final, serverSignature } = proveByScram(bare, serverFirst, password);
    const next = { saslContinue: 1, conversationId: first.conversationId as number };
    const second = await this.command({ ...next, payload: toBinary(final) }, { db });
    if (second.ok !== 1) return second;
    if (toText(second.payload) !== `v=${serverSignature}`) throw new Error('wrong server signature');
    return second.done === true ? second : await this.command({ ...next, payload: toBinary('') }, { db });
  }

  #waitForReply(): Promise<Buffer> {
    return new Promise((resolve) => this.#pendingReplies.push(resolve));
  }
}

export interface MongoCommandOptions {
  db?: string;
  sequence?: [string, BSON.Document[]];
  chunkBytes?: number;
}

export function withHeader(opcode: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(16);
  header.writeInt32LE(16 + payload.length, 0);
  header.writeInt32LE(7, 4);
  header.writeInt32LE(opcode, 12);
  return Buffer.concat([header, payload]);
}

export function encodeMessage(body: BSON.Document, sequence?: [string, BSON.Document[]]): Buffer {
  const sections = [Buffer.alloc(4), Buffer.from([0]), BSON.serialize(body)];
  if (sequence !== undefined) {
    const [name, documents] = sequence;
    const content = Buffer.concat([
      Buffer.from(`${name}\0`),
      ...documents.map((document) => BSON.serialize(document)),
    ]);
    const size = Buffer.alloc(4);
    size.writeInt32LE(4 + content.length);
    sections.push(Buffer.from([1]), size, content);
  }
  return withHeader(2013, Buffer.concat(sections));
}

function proveByScram(bare: string, serverFirst: string, password: string) {
  const [, nonce, salt, iterations] = /^r=([^,]*),s=([^,]*),i=(\d+)$/.exec(serverFirst)!;
  const salted = pbkdf2Sync(password, Buffer.from(salt!, 'base64'), Number(iterations), 32, 'sha256');
  const clientKey = hmac(salted, 'Client Key');
  const withoutProof = `c=biws,r=${nonce}`;
  const message = `${bare},${serverFirst},${withoutProof}`;
  const signature = hmac(createHash('sha256').update(clientKey).digest(), message);
  const proof = clientKey.map((byte, i) => byte ^ signature[i]!);
  return {
    final: `${withoutProof},p=${Buffer.from(proof).toString('base64')}`,
    serverSignature: hmac(hmac(salted, 'Server Key'), message).toString('base64'),
  };
}

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const toBinary = (text: string): Binary => new Binary(Buffer.from(text));
const toText = (payload: unknown): string => Buffer.from((payload as Binary).value()).toString();
