import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { request as sendHttp } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { CompletedPart, S3ClientConfig } from '@aws-sdk/client-s3';
import type { ExecutionContext } from 'ava';
import { parseQuery } from '../../../../scripts/embedded/s3/parse-request.ts';
import { startEmbeddedS3 } from '../../../../scripts/embedded/s3/server.ts';
import type { EmbeddedS3, EmbeddedS3Options } from '../../../../scripts/embedded/s3/server.ts';
import {
  deriveSigningKey,
  hashHex,
  renderCanonicalRequest,
  signText,
} from '../../../../scripts/embedded/s3/signature.ts';

export const credentials = { accessKeyId: 'AKIDTEST', secretAccessKey: 'a secret of the tests' };
export const bucketName = 'pictures';
export const dayMs = 86_400_000;

export interface TestServer extends EmbeddedS3 {
  dir: string;
  client: S3Client;
}

export async function makeTempDir(t: ExecutionContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'embedded-s3-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** A server with its own folder and one bucket, and an unmodified AWS SDK client. */
export async function startTestServer(
  t: ExecutionContext,
  options: Partial<EmbeddedS3Options> = {},
): Promise<TestServer> {
  const dir = options.dir ?? (await makeTempDir(t));
  const server = await startEmbeddedS3({ dir, ...credentials, ...options });
  let isClosed = false;
  const close = async () => {
    if (isClosed) return;
    isClosed = true;
    await server.close();
  };
  t.teardown(close);
  const client = createClient(t, server.endpoint);
  if (options.dir === undefined) await client.send(new CreateBucketCommand({ Bucket: bucketName }));
  return { ...server, close, dir, client };
}

export function createClient(t: ExecutionContext, endpoint: string, config: S3ClientConfig = {}): S3Client {
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials,
    maxAttempts: 1,
    ...config,
  });
  t.teardown(() => client.destroy());
  return client;
}

export interface RawRequest {
  method?: string;
  /** Path and query, sent exactly as given. */
  target: string;
  headers?: Record<string, string>;
  body?: Buffer | string;
  payloadHash?: string;
  nowMs?: number;
  secretAccessKey?: string;
  region?: string;
}

export interface RawResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
  /** The Code of an S3 error document, or an empty string. */
  code: string;
}

export interface SignedHeaders {
  headers: Record<string, string>;
  signature: string;
  signingKey: Buffer;
  timestamp: string;
  scope: string;
}

/** Signs a request with the functions that signature.test.ts verifies against the published AWS examples. */
export function signRequest(endpoint: string, raw: RawRequest): SignedHeaders {
  const { method = 'GET', target, body = '', region = 'us-east-1' } = raw;
  const timestamp = formatTimestamp(raw.nowMs ?? Date.now());
  const payloadHash = raw.payloadHash ?? hashHex(body);
  const headers: Record<string, string> = {
    ...raw.headers,
    host: new URL(endpoint).host,
    'x-amz-date': timestamp,
    'x-amz-content-sha256': payloadHash,
  };
  const signedHeaders = Object.keys(headers).sort();
  const [rawPath = '', rawQuery = ''] = target.split('?');
  const canonical = renderCanonicalRequest(
    { method, rawPath, query: parseQuery(rawQuery), headers: new Map(Object.entries(headers)) },
    signedHeaders,
    payloadHash,
  );
  const scope = `${timestamp.slice(0, 8)}/${region}/s3/aws4_request`;
  const signingKey = deriveSigningKey(
    raw.secretAccessKey ?? credentials.secretAccessKey,
    timestamp.slice(0, 8),
    region,
  );
  const signature = signText(
    signingKey,
    `AWS4-HMAC-SHA256\n${timestamp}\n${scope}\n${hashHex(Buffer.from(canonical, 'latin1'))}`,
  );
  headers['authorization'] =
    `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${signedHeaders.join(';')}, Signature=${signature}`;
  return { headers, signature, signingKey, timestamp, scope };
}

/** Sends a request without normalizing its path, which fetch and URL would do. */
export function sendRaw(
  endpoint: string,
  { method = 'GET', target, headers = {}, body }: RawRequest,
): Promise<RawResponse> {
  const { hostname, port } = new URL(endpoint);
  return new Promise((resolve, reject) => {
    const request = sendHttp({ hostname, port, method, path: target, headers, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(parts);
        const code = /<Code>(\w+)<\/Code>/.exec(bytes.toString('latin1'))?.[1] ?? '';
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: bytes, code });
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

export function sendSigned(endpoint: string, raw: RawRequest): Promise<RawResponse> {
  const { headers } = signRequest(endpoint, raw);
  const length = raw.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(raw.body)) };
  return sendRaw(endpoint, { ...raw, headers: { ...headers, ...length } });
}

export function formatTimestamp(ms: number): string {
  return new Date(ms).toISOString().replaceAll(/[-:]|\.\d{3}/g, '');
}

export function md5Etag(bytes: Buffer | string): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`;
}

export function makeBytes(length: number): Buffer {
  return randomBytes(length);
}

/** The name of the error that a promise is rejected with; fails the test if it is not rejected. */
export async function getErrorName(t: ExecutionContext, promise: Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(promise);
  return error?.name ?? '';
}

/** The smallest part that need not be the last. */
export const minPartBytes = 5 * 1024 * 1024;

export interface TestUpload {
  id: string;
  /** The parts stored so far, as CompleteMultipartUpload lists them. */
  parts: CompletedPart[];
  put: (partNumber: number, body: Buffer) => Promise<CompletedPart>;
  complete: (parts?: CompletedPart[]) => Promise<string>;
}

/** Starts a multipart upload, of a client that does not compute checksums unless `input` has an algorithm. */
export async function startUpload(client: S3Client, Key: string, input: object = {}): Promise<TestUpload> {
  const target = { Bucket: bucketName, Key };
  const created = await client.send(new CreateMultipartUploadCommand({ ...target, ...input }));
  const id = created.UploadId ?? '';
  const parts: CompletedPart[] = [];
  return {
    id,
    parts,
    async put(PartNumber, Body) {
      const { ChecksumAlgorithm } = created;
      const command = new UploadPartCommand({
        ...target,
        UploadId: id,
        PartNumber,
        Body,
        ...(ChecksumAlgorithm && { ChecksumAlgorithm }),
      });
      const { $metadata: _, ...stored } = await client.send(command);
      const part = { ...stored, PartNumber };
      parts.push(part);
      return part;
    },
    async complete(listed = parts) {
      const command = { ...target, UploadId: id, MultipartUpload: { Parts: listed } };
      const { ETag = '' } = await client.send(new CompleteMultipartUploadCommand(command));
      return ETag;
    },
  };
}

/** The entity tag that S3 gives to an object of these parts. */
export function multipartEtag(...bodies: Buffer[]): string {
  const digests = bodies.map((body) => createHash('md5').update(body).digest());
  return `"${createHash('md5').update(Buffer.concat(digests)).digest('hex')}-${String(bodies.length)}"`;
}

/** An object's bytes, as they are stored. */
export async function readObject(client: S3Client, Key: string): Promise<Buffer> {
  const { Body } = await client.send(new GetObjectCommand({ Bucket: bucketName, Key }));
  return Buffer.from((await Body?.transformToByteArray()) ?? []);
}
