import Type from 'typebox';
import { StringEnum } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';

const Probe = Type.Object({ status: StringEnum(['ok', 'unavailable']) }, { title: 'Probe' });

export const getLiveness = defineOperation({
  operationId: 'getLiveness',
  tag: 'System',
  summary: 'Check whether this process runs',
  description:
    'For probes that restart a process. Depends on nothing else: use `/v1/health` to check the service.',
  method: 'get',
  path: '/livez',
  atRoot: true,
  auth: 'none',
  response: Probe,
  errors: [],
  example: { response: { status: 'ok' } },
});

export const getReadiness = defineOperation({
  operationId: 'getReadiness',
  tag: 'System',
  summary: 'Check whether this process takes requests',
  description:
    'For load balancers. A process that stops, or that cannot reach Redis, is not ready. Missing workers do not make it ' +
    'unready: the requests that wait are what makes workers start.',
  method: 'get',
  path: '/readyz',
  atRoot: true,
  auth: 'none',
  response: Probe,
  additionalResponses: [
    {
      status: 503,
      response: Probe,
      description: 'Another process should get the requests.',
      example: { response: { status: 'unavailable' } },
    },
  ],
  errors: [],
  example: { response: { status: 'ok' } },
});

export const getMetrics = defineOperation({
  operationId: 'getMetrics',
  tag: 'System',
  summary: 'Get the metrics of this process',
  description:
    'For Prometheus. Needs the operator’s `METRICS_TOKEN`. If none is set, only connections of the same machine get them, ' +
    'without a proxy.',
  method: 'get',
  path: '/metrics',
  atRoot: true,
  auth: 'metrics',
  response: Type.String({ description: 'Prometheus’s text format.' }),
  responseType: 'text/plain',
  errors: ['forbidden'],
  example: {
    response:
      '# HELP model_gateway_build_info Always 1. Which build this process runs.\n# TYPE model_gateway_build_info gauge\n' +
      'model_gateway_build_info{role="api",version="0.1.0",build="5d1f0c2a"} 1\n',
  },
});
