import test from 'ava';
import { limitConnections } from '../../../../api/http/connections/open-files.ts';

/** The computed limits, and the number of warnings logged. */
function limit(
  maxOpenFiles: number | null,
  maxConnections: number | null = null,
  maxConnectionsPerAddress: number | null = null,
) {
  let warnings = 0;
  const log = { warn: () => void (warnings += 1) };
  const { max, maxPerNetwork } = limitConnections(
    { maxConnections, maxConnectionsPerAddress },
    log,
    maxOpenFiles,
  );
  return { max, maxPerNetwork, warnings };
}

test('256 open files are reserved, and up to 16 384 others are used for connections; with a limit below 512, half are used', (t) => {
  for (const [maxOpenFiles, max] of [
    [2, 1],
    [255, 127],
    [256, 128],
    [511, 255],
    [512, 256],
    [513, 257],
    [1_024, 768],
    [16_640, 16_384],
    [16_641, 16_384],
    [1_048_576, 16_384],
    [null, 16_384],
  ] as const)
    t.deepEqual(limit(maxOpenFiles), { max, maxPerNetwork: null, warnings: 0 }, `${maxOpenFiles}`);
});

test('the operator may set a higher limit, and is warned if open files may run out', (t) => {
  for (const [maxOpenFiles, maxConnections, warnings] of [
    [1_024, 768, 0],
    [1_024, 769, 1],
    [256, 128, 0],
    [256, 129, 1],
    [1_048_576, 100_000, 0],
    [null, 100_000, 0],
  ] as const) {
    t.deepEqual(limit(maxOpenFiles, maxConnections, 7), { max: maxConnections, maxPerNetwork: 7, warnings });
  }
});
