import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { invalidField } from '../../shared/contract/errors.ts';
import { isOneEditApart } from './one-edit-apart.ts';
import { modelDisabled, modelNotFound } from '../../shared/contract/model-errors.ts';
import type { ModelType } from '../../shared/contract/models.ts';
import type { Services } from '../services.ts';

/**
 * Finds the requested model by its id or alternative id.
 * @throws AppError `model_not_found`; `validation_failed` if it is of another type; `model_disabled`
 */
export function findModel({ catalog }: Services, id: string, types: readonly ModelType[]): CatalogModel {
  const model = catalog.find(id);
  if (model === undefined) {
    const names = catalog.current.models.flatMap((one) => [one.id, ...one.aliases]);
    throw modelNotFound(
      id,
      ['body', 'model'],
      names.find((name) => isOneEditApart(id, name)),
    );
  }
  if (!types.includes(model.type)) {
    throw invalidField(
      ['body', 'model'],
      `"${id}" is a model of type ${model.type}, but this endpoint accepts only ${types.join(' or ')} models.`,
    );
  }
  if (!catalog.isActive(model)) throw modelDisabled(id);
  return model;
}
