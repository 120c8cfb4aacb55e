import { presentModel } from '../../shared/catalog/present-model.ts';
import { modelNotFound } from '../../shared/contract/model-errors.ts';
import type { ModelType } from '../../shared/contract/models.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { PreparedBodies, PreparedBody } from '../present/prepared-body.ts';
import type { Services } from '../services.ts';
import { sendPrepared } from './send-prepared.ts';

/** A model that is turned off shows within a second: a copy is asked about before it is used. */
const cacheControl = 'public, no-cache';

export function listModels({ catalog }: Services) {
  const bodies = new PreparedBodies();
  return async (context: ApiContext): Promise<void> => {
    const { type } = context.state.query as { type?: ModelType };
    const body = bodies.get(catalog.state, type ?? '', () => {
      const models = catalog.current.models.filter((model) => type === undefined || model.type === type);
      return PreparedBody.ofJson({
        object: 'list',
        data: models.map((model) => presentModel(model, catalog.isActive(model))),
      });
    });
    await sendPrepared(context, body, cacheControl);
  };
}

/** Ids hold slashes, so the id is all that follows; they come encoded or as they are. */
export function getModel({ catalog }: Services) {
  const bodies = new PreparedBodies();
  return async (context: ApiContext): Promise<void> => {
    const id = decodeId(context.path.slice('/v1/models/'.length).replace(/\/$/, ''));
    const model = id === null ? undefined : catalog.find(id);
    if (model === undefined) throw modelNotFound(id ?? context.path.slice('/v1/models/'.length));
    const body = bodies.get(catalog.state, model.id, () =>
      PreparedBody.ofJson(presentModel(model, catalog.isActive(model))),
    );
    await sendPrepared(context, body, cacheControl);
  };
}

function decodeId(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray % is no encoding, and no model's id either.
    return null;
  }
}
