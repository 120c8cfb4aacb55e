import { get } from 'node:http';
import { queueNames, type QueueName } from '../../shared/work/queue/job-kinds.ts';

/** What waits for the workers of a queue. */
export interface QueueDemand {
  /** Requests, jobs and lines of batches that a further worker could take now. */
  readonly takeable: number;
  /** How long the oldest of them has waited. */
  readonly takeableWaitingMs: number;
  /** How much of the workers' capacity the work takes that could run now, or runs. Lines of batches take less than one. */
  readonly demand: number;
  readonly workers: number;
  /** How many requests the live workers may run at the same time. */
  readonly capacity: number;
}

export type Demand = Readonly<Record<QueueName, QueueDemand>>;

const demandPath = '/v1/admin/demand';
const timeoutMs = 3_000;
const maxBytes = 4_000_000;

/**
 * Asks the api what waits for workers.
 * @param token METRICS_TOKEN; null if there is none
 * @throws Error that says why the demand is not known
 */
export async function readDemand(apiUrl: string, token: string | null): Promise<Demand> {
  return parseDemand(await fetchText(`${apiUrl}${demandPath}`, token));
}

function fetchText(url: string, token: string | null): Promise<string> {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, agent: false }, (response) => {
      if (response.statusCode !== 200) {
        request.destroy();
        reject(new Error(`the api responds with ${response.statusCode}`));
        return;
      }
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
        if (body.length > maxBytes) request.destroy(new Error('the response of the api is too long'));
      });
      response.on('error', reject);
      response.on('end', () => resolve(body));
    });
    const timer = setTimeout(() => request.destroy(new Error('the api does not respond')), timeoutMs);
    request.on('error', reject);
    request.on('close', () => {
      clearTimeout(timer);
      reject(new Error('the api closed the connection'));
    });
  });
}

/** @throws Error */
function parseDemand(text: string): Demand {
  const body: unknown = JSON.parse(text);
  const read = (queue: QueueName): QueueDemand => {
    const fields = readField(body, queue);
    const readNumber = (name: string): number => {
      const value = readField(fields, name);
      // Nothing waits.
      if (value === null) return 0;
      if (typeof value !== 'number' || !Number.isFinite(value))
        throw new Error(`the api does not say ${queue}.${name}`);
      return value;
    };
    return {
      takeable: readNumber('takeable'),
      takeableWaitingMs: readNumber('takeable_waiting_seconds') * 1_000,
      demand: readNumber('demand'),
      workers: readNumber('workers'),
      capacity: readNumber('capacity'),
    };
  };
  return Object.fromEntries(queueNames.map((queue) => [queue, read(queue)])) as unknown as Demand;
}

function readField(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
