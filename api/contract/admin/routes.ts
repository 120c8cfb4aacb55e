import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { ModelType } from '../../../shared/contract/models.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { DryRunQuery, dryRuns } from './dry-run.ts';
import { Count, LastRefusal, PageOfAdmin, pageQuery, ReasonQuery } from './fields.ts';

const AdminModel = Type.Object(
  {
    id: Type.String(),
    type: ModelType,
    active: Type.Boolean({ description: 'Whether requests for it are accepted.' }),
    disabled: Type.Boolean({ description: 'Whether an operator has switched it off.' }),
    not_served: Nullable(Type.String({ description: 'Why requests for it fail, as far as is known.' })),
    context: Type.Integer(),
    aliases: Type.Array(Type.String()),
    routes: Type.Array(Type.String(), { description: 'As `upstream/model`.' }),
    pricing: Type.Unsafe<object>({ type: 'object', description: 'As in `GET /v1/models`.' }),
  },
  { title: 'AdminModel' },
);

const modelId = 'demo-echo';
const model = {
  id: modelId,
  type: 'chat',
  active: true,
  disabled: false,
  not_served: null,
  context: 8_192,
  aliases: [],
  routes: ['builtin/demo-echo'],
  pricing: { type: 'tokens', prompt: 50, completion: 150 },
};

/** Ids of models may contain slashes. */
const modelPath = Type.Object({ model_id: Type.String({ description: 'The id of the model.' }) });

export const listAdminModels = defineOperation({
  operationId: 'listAdminModels',
  tag: 'Admin',
  summary: 'List models',
  description: 'All models of the catalog in its order, and why any of them is not served.',
  method: 'get',
  path: '/admin/models',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object(pageQuery),
  response: PageOfAdmin(AdminModel),
  errors: [],
  example: { query: { limit: 20 }, response: { data: [model], has_more: false, last_id: modelId } },
});

export const updateModel = defineOperation({
  operationId: 'updateModel',
  tag: 'Admin',
  summary: 'Enable or disable a model',
  description:
    'Requests for a disabled model get 422 `model_disabled`. Holds within a second everywhere, until it is changed.',
  method: 'patch',
  path: '/admin/models/{model_id}',
  auth: 'admin',
  pathParameters: modelPath,
  query: DryRunQuery,
  body: Type.Object({ active: Type.Boolean() }, { title: 'UpdateModelRequest' }),
  response: AdminModel,
  additionalResponses: [dryRuns.updateModel],
  errors: ['model_not_found'],
  example: {
    path: { model_id: modelId },
    body: { active: true },
    response: model,
  },
});

export const testModel = defineOperation({
  operationId: 'testModel',
  tag: 'Admin',
  summary: 'Test a model',
  description:
    'A worker makes one short call to the model, through the same routes, keys and limits as requests. The vendor charges for ' +
    'it, and no account does: an image of the model’s first size, or a few tokens. Takes up to a minute.',
  method: 'post',
  path: '/admin/models/{model_id}/test',
  auth: 'admin',
  pathParameters: modelPath,
  query: ReasonQuery,
  response: Type.Object(
    {
      model: Type.String(),
      ok: Type.Boolean(),
      upstream: Nullable(Type.String({ description: 'The upstream that was called last.' })),
      upstream_model: Nullable(Type.String()),
      duration_ms: Count(),
      prompt_tokens: Nullable(Type.Integer()),
      completion_tokens: Nullable(Type.Integer()),
      status: Nullable(Type.Integer({ description: 'The HTTP status of the vendor’s error.' })),
      reason: Nullable(Type.String({ description: 'Why it failed, in the vendor’s own words.' })),
    },
    { title: 'ModelTest' },
  ),
  errors: ['model_not_found'],
  example: {
    path: { model_id: modelId },
    response: {
      model: modelId,
      ok: true,
      upstream: 'builtin',
      upstream_model: 'demo-echo',
      duration_ms: 412,
      prompt_tokens: 12,
      completion_tokens: 2,
      status: null,
      reason: null,
    },
  },
});

const AdminRoute = Type.Object(
  {
    model: Type.String(),
    upstream: Type.String(),
    upstream_model: Type.String({ description: 'What the vendor calls the model.' }),
    kind: Type.String({ description: 'The dialect of the upstream, as in the catalog.' }),
    host: Nullable(Type.String({ description: 'Of the address of the upstream; null if it is built in.' })),
    weight: Type.Number({
      description: 'Its share of the requests, beside those of other routes of the model.',
    }),
    cost: Nullable(
      Type.Unsafe<object>({
        type: 'object',
        description:
          'What the vendor charges according to the catalog, as `pricing` of the model. Null if the catalog does not say.',
      }),
    ),
    usable: Type.Boolean({
      description: 'Whether its upstream has a usable key or needs none. Otherwise it is never called.',
    }),
    key: Nullable(Type.String({ description: 'The position of the key, and its name in the logs.' })),
    not_called: Nullable(Type.String({ description: 'Why it is not called.' })),
    last_refusal: LastRefusal,
    drained: Type.Boolean({ description: 'Whether an operator has drained it, or its whole upstream.' }),
    upstream_drained: Type.Boolean({ description: 'Whether an operator has drained the whole upstream.' }),
    breaker: StringEnum(['closed', 'open', 'half-open']),
    failed_accounts: Count(),
    pause_seconds: Count(),
    succeeded: Count('Calls that ended lately.'),
    failed: Count(),
    rate_limited: Count(),
    calls: Count('Calls that run, in all workers.'),
    max_calls: Count('Of the upstream.'),
    waiting_for_slot: Count(
      'Requests, jobs and lines of the model that wait for a slot of any of its routes.',
    ),
  },
  { title: 'AdminRoute' },
);

const route = {
  model: modelId,
  upstream: 'builtin',
  upstream_model: 'demo-echo',
  kind: 'builtin',
  host: null,
  weight: 1,
  cost: null,
  usable: true,
  key: null,
  not_called: null,
  last_refusal: null,
  drained: false,
  upstream_drained: false,
  breaker: 'closed',
  failed_accounts: 0,
  pause_seconds: 0,
  succeeded: 120,
  failed: 1,
  rate_limited: 0,
  calls: 3,
  max_calls: 64,
  waiting_for_slot: 0,
};

export const listUpstreams = defineOperation({
  operationId: 'listUpstreams',
  tag: 'Admin',
  summary: 'List routes of upstreams',
  description:
    'A row per model, route and key, as the running processes see them, in the order of the catalog; then a row per route whose ' +
    'upstream has no usable key.',
  method: 'get',
  path: '/admin/upstreams',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object({
    upstream: Type.Optional(Type.String({ maxLength: 200, description: 'Only those of this upstream.' })),
    ...pageQuery,
  }),
  response: PageOfAdmin(AdminRoute),
  errors: [],
  example: { query: { limit: 20 }, response: { data: [route], has_more: false, last_id: null } },
});

const upstreamPath = Type.Object({
  name: Type.String({
    minLength: 1,
    maxLength: 200,
    description: 'The name of the upstream in the catalog.',
  }),
});

export const UpstreamRequest = Type.Object(
  {
    model: Type.Optional(
      Nullable(
        Type.String({ maxLength: 200, description: 'Only its routes of this model. All by default.' }),
      ),
    ),
  },
  { title: 'UpstreamRequest' },
);
export type UpstreamRequest = Static<typeof UpstreamRequest>;

const UpstreamRoutes = Type.Object({ data: Type.Array(AdminRoute) }, { title: 'UpstreamRoutes' });
const upstreamExample = { path: { name: 'builtin' }, body: { model: modelId } };

export const resetUpstream = defineOperation({
  operationId: 'resetUpstream',
  tag: 'Admin',
  summary: 'Reset an upstream',
  description:
    'Closes its circuit breakers and ends the cooldowns of its keys, so that it is called at once. With a model, a key that is ' +
    'on cooldown for all models stays so.',
  method: 'post',
  path: '/admin/upstreams/{name}/reset',
  auth: 'admin',
  pathParameters: upstreamPath,
  query: ReasonQuery,
  body: UpstreamRequest,
  response: UpstreamRoutes,
  errors: ['not_found', 'model_not_found'],
  example: { ...upstreamExample, response: { data: [route] } },
});

export const drainUpstream = defineOperation({
  operationId: 'drainUpstream',
  tag: 'Admin',
  summary: 'Drain an upstream',
  description:
    'It gets no further calls within a second, in all workers, until it is undrained; running calls continue. Other routes ' +
    'take over. A model all of whose routes are drained is not active.',
  method: 'post',
  path: '/admin/upstreams/{name}/drain',
  auth: 'admin',
  pathParameters: upstreamPath,
  query: DryRunQuery,
  body: UpstreamRequest,
  response: UpstreamRoutes,
  additionalResponses: [dryRuns.drainUpstream],
  errors: ['not_found', 'model_not_found'],
  example: { ...upstreamExample, response: { data: [{ ...route, drained: true }] } },
});

export const undrainUpstream = defineOperation({
  operationId: 'undrainUpstream',
  tag: 'Admin',
  summary: 'Undrain an upstream',
  description: 'Ends what a drain with the same `model` began.',
  method: 'post',
  path: '/admin/upstreams/{name}/undrain',
  auth: 'admin',
  pathParameters: upstreamPath,
  query: ReasonQuery,
  body: UpstreamRequest,
  response: UpstreamRoutes,
  errors: ['not_found', 'model_not_found'],
  example: { ...upstreamExample, response: { data: [route] } },
});
